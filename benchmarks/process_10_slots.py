"""How fast does one process with 10 slots work off jobs that do nothing?"""

from process import measure

if __name__ == "__main__":
    measure(__doc__, slots=10)
