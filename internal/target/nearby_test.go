package target

import (
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
)

// Servers that list models are found in the order of the ports; a page and a closed port are not.
func TestFindNearby(t *testing.T) {
	serve := func(status int, body string) int {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
		n, _ := strconv.Atoi(port)
		return n
	}
	page := serve(200, "<html>")
	models := serve(200, `{"object":"list","data":[{"id":"a"},{"id":"b"}]}`)
	locked := serve(401, `{"error":"no key"}`)
	empty := serve(200, `{"data":[]}`)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().(*net.TCPAddr).Port
	l.Close()
	found := FindNearby(t.Context(), []int{page, closed, models, empty, locked})
	if len(found) != 2 || found[0].Locked || !found[1].Locked {
		t.Errorf("%+v", found)
	}
	if ports := UsualPorts("9, x,70000,10"); !slices.Equal(ports, []int{9, 10}) {
		t.Errorf("%v", ports)
	}
	if ports := UsualPorts(""); len(ports) != 7 {
		t.Errorf("%v", ports)
	}
}
