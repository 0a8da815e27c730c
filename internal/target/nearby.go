package target

import (
	"context"
	"encoding/json"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"pitot/internal/client"
)

// Nearby is a server that was found without being named.
type Nearby struct {
	URL    string
	Locked bool // it wants a key
}

// usualPorts are the ports on which servers listen if nothing else is said: vLLM, SGLang, llama.cpp
// and TGI, Ollama, LM Studio, TGI in a container, LiteLLM.
var usualPorts = []int{8000, 30000, 8080, 11434, 1234, 3000, 4000}

// nearbyTimeout bounds a look at one port of this machine.
const nearbyTimeout = 1500 * time.Millisecond

// UsualPorts returns the ports at which [FindNearby] looks: those of list, "8000,8001", or the usual
// ones if it is empty.
func UsualPorts(list string) (ports []int) {
	for _, text := range strings.Split(list, ",") {
		if port, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && port > 0 && port < 1<<16 {
			ports = append(ports, port)
		}
	}
	if len(ports) == 0 {
		return usualPorts
	}
	return ports
}

// FindNearby returns the servers on ports of this machine that list models, in the order of the ports.
func FindNearby(ctx context.Context, ports []int) (found []Nearby) {
	seen := make([]*Nearby, len(ports))
	var wait sync.WaitGroup
	for i, port := range ports {
		wait.Go(func() { seen[i] = lookAt(ctx, "http://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) })
	}
	wait.Wait()
	for _, n := range seen {
		if n != nil {
			found = append(found, *n)
		}
	}
	return found
}

// lookAt returns the server at a URL, nil if none lists models there. What is no model server, as a
// web page, does not answer with such a list.
func lookAt(ctx context.Context, url string) *Nearby {
	endpoint, _, err := client.ParseTarget(url)
	if err != nil {
		return nil
	}
	endpoint.Proxy = nil // none stands between programs of one machine
	ctx, cancel := context.WithTimeout(ctx, nearbyTimeout)
	defer cancel()
	dialer := client.Dialer{Endpoint: endpoint}
	answer, err := dialer.Fetch(ctx, "GET", "/v1/models", nil, nil, "")
	if err != nil {
		return nil
	}
	var list struct {
		Data []json.RawMessage `json:"data"`
	}
	if json.Unmarshal(answer.Body, &list) != nil {
		return nil
	}
	switch {
	case answer.Status == 401 || answer.Status == 403:
		return &Nearby{URL: url, Locked: true}
	case answer.Status != 200 || len(list.Data) == 0:
		return nil
	}
	return &Nearby{URL: url}
}
