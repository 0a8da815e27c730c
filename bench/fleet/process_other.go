//go:build !unix

package main

import (
	"log"
	"os"
	"time"
)

// Elsewhere no process can be stopped and go on, and processor time is not read.

func standStill(*os.Process, time.Duration) {
	log.Fatal("-stall: a process cannot be stopped and go on here")
}

func spent() time.Duration { return 0 }
