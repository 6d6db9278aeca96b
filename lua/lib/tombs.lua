--- Ids that were taken out of a ready list without a search there: their entries lie on till a claim meets them.
-- Expects: tombs_prefix.
local tombs = {}

--- Give an id its entry back, if one still lies there; false if not. (A second entry beside it would be dropped with
-- it by the claim that peeks at both.)
function tombs.unbury(queue, id)
  return redis.pcall('HDEL', tombs_prefix .. queue, id) == 1
end
