package main

import "time"

// onGroup makes the truths groups of four accelerators, whose all-reduces are
// drawn too: around those measured of four H100s (4.6 µs, 175 GB/s of a message),
// as far as other links and versions are from them. That of the latency is in
// every step as the host's overhead is, that of the rate in every prompt as
// computing is, so that a fit has to tell them apart or to say that it cannot.
func onGroup() {
	base = "llama-3.1-70b@4xh100?dtype=fp8&max_num_seqs=48"
	drawn = append(drawn, parameter{"allreduce_latency", 2, 14, time.Microsecond}, parameter{"allreduce_gb_per_s", 70, 350, 0})
}
