package run

import "pitot/internal/data/spill"

// memoryBudget is how many bytes of a run's requests and gaps are kept in memory
// when its result is made, and how many more while it is. The rest goes to a file in
// the run directory that has no name. With what reading and writing records takes, a
// run of any length is finished in less than a gigabyte: see bench/finish.
const memoryBudget = 128 << 20

// memory is a store for the results of a run.
func memory(dir string) *spill.Store { return spill.New(dir, memoryBudget) }
