//go:build race

package cli

// raceFactor is how much slower the race detector makes a process.
const raceFactor = 5
