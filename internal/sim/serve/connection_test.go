package serve

import (
	"net"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
)

// A histogram's quantile is the exact order statistic or up to 1/16 more.
func TestHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Int64Range(0, 1<<rapid.IntRange(1, 62).Draw(t, "bits")), 1, 50).Draw(t, "xs")
		var h histogram
		most := int64(0)
		for _, x := range xs {
			h.observe(x)
			most = max(most, x)
			if u := bucketLimit(bucketIndex(x)); u < x || float64(u-x) > float64(x)/16 {
				t.Fatalf("%d is in a bucket up to %d", x, u)
			}
		}
		if q := int64(h.quantile(1)); q != most {
			t.Fatalf("quantile 1 is %d, want %d", q, most)
		}
		if h.quantile(0.5) > h.quantile(0.99) {
			t.Fatal("quantiles fall")
		}
	})
}

// Bytes of any kind on a connection end in an answer or a closed connection,
// never in a panic.
func FuzzConnection(f *testing.F) {
	f.Add([]byte(post("/v1/completions", `{"prompt":"x","max_tokens":1,"stream":true}`)))
	f.Add([]byte("GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.0\r\n\r\n"))
	f.Add([]byte("POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n3\r\n{}x\r\n0\r\n\r\n"))
	s := New(Config{})
	f.Fuzz(func(t *testing.T, in []byte) {
		client, server := net.Pipe()
		done := make(chan struct{})
		go func() { s.ServeConn(server); close(done) }()
		go func() {
			buf := make([]byte, 4096)
			for {
				if _, err := client.Read(buf); err != nil {
					return
				}
			}
		}()
		_ = client.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = client.Write(in)
		client.Close()
		<-done
	})
}
