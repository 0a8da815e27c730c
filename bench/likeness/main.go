// Command likeness asks two servers the same and prints in what their answers
// differ: a real vLLM, and the mock that stands for it.
//
//	go run ./bench/likeness [-record] REAL MOCK [FILE…]
//
// REAL and MOCK are URLs, FILEs hold requests: by default those in
// internal/sim/serve/vllmapi/testdata. Texts, ids, times and probabilities are
// each server's own and are not compared; refusals are, to the byte. With
// -record what REAL answers is written into the files, as what tests hold the
// mock against. The servers have to agree in what requests are about:
//
//	vllm serve DIR --served-model-name tiny --max-model-len 4096 --enable-prompt-tokens-details \
//	  --enable-auto-tool-choice --tool-call-parser hermes
//	pitot mock 'DIR@cpu?max_model_len=4096' --model tiny --prompt-tokens-details
//
// where DIR holds a model with a vocabulary of 8,000 tokens; files about keys
// need --api-key k1 and --key-file besides, and are left out without -keys.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"pitot/bench/likeness/exchange"
)

func main() {
	log.SetFlags(0)
	record := flag.Bool("record", false, "write what REAL answers into the files")
	origin := flag.String("origin", "", "with -record, what REAL is")
	keys := flag.Bool("keys", false, "the servers ask for the keys k1 and k2")
	flag.Parse()
	args := flag.Args()
	if len(args) < 2 {
		log.Fatal("want two URLs: of a real server and of the mock")
	}
	real, mock, files := args[0], args[1], args[2:]
	if len(files) == 0 {
		files, _ = filepath.Glob("internal/sim/serve/vllmapi/testdata/*.json")
	}
	client := &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}, Timeout: 2 * time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	same, all := 0, 0
	for _, name := range files {
		f, err := exchange.Read(name)
		if err != nil {
			log.Fatal(err)
		}
		if filepath.Base(name) == "keys.json" != *keys {
			continue
		}
		for i := range f.Exchanges {
			x := &f.Exchanges[i]
			want, err := x.Ask(client, real)
			if err != nil {
				log.Fatalf("%s: %v", real, err)
			}
			got, err := x.Ask(client, mock)
			if err != nil {
				log.Fatalf("%s: %v", mock, err)
			}
			x.Answer = want
			all++
			d := exchange.Difference(want, got)
			if d == "" {
				same++
				continue
			}
			fmt.Printf("%s, %s: %s %s\n%s\n", filepath.Base(name), x.Name, x.Method, x.Path, indent(d))
		}
		if *record {
			if *origin != "" {
				f.Origin = *origin
			}
			if err := f.Write(name); err != nil {
				log.Fatal(err)
			}
		}
	}
	fmt.Printf("%d of %d alike\n", same, all)
}

// indent is a text two spaces further to the right, and no line of it longer than
// one wants to read.
func indent(text string) string {
	const longest = 1000
	var b strings.Builder
	for line := range strings.Lines(text) {
		if len(line) > longest {
			line = line[:longest] + "…\n"
		}
		b.WriteString("  " + line)
	}
	return b.String()
}
