--- What a recovery did, for the changelog.
-- Expects: changelog_key, and lib/recovery, lib/changelog.
local recovered = {}

--- Tell what was recovered: a line where a worker lost its lease, or jobs were taken from one; and one for the jobs
-- that were buried because they crashed too often.
function recovered.tell(by)
  if #recovery.workers == 0 then return end
  changelog.write(changelog_key, 'recover', by, #recovery.ids > 0 and recovery.ids or nil,
    {'workers', changelog.joined(recovery.workers), 'crashed', recovery.crashed})
  changelog.write(changelog_key, 'bury', by, recovery.buried, {'why', 'crashed'})
end
