package bus_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"pitot/internal/workers/bus"
	"pitot/internal/workers/natsserver"
)

// certificate writes one for 127.0.0.1 that vouches for itself, with its key in the same file.
func certificate(t *testing.T, path string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A server with a certificate is spoken to over TLS, by who trusts it, and by its own process
// past the socket; one that asks for an nkey takes the seed's. Who is not let in is told so.
func TestAccess(t *testing.T) {
	dir := t.TempDir()
	cert := filepath.Join(dir, "cert.pem")
	certificate(t, cert)
	s, err := natsserver.Serve(bus.Access{URL: "127.0.0.1:0", Token: "secret-token", Cert: cert}, filepath.Join(dir, "js"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	own, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	own.Close()
	url := "tls://" + strings.TrimPrefix(strings.TrimPrefix(s.URL(), "tls://"), "nats://")
	c, err := bus.DialNATS(bus.Access{URL: url, Token: "secret-token", CA: cert})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	for what, a := range map[string]bus.Access{
		"an unknown authority": {URL: url, Token: "secret-token"},
		"a wrong token":        {URL: url, Token: "other-token", CA: cert},
		"no file":              {URL: url, Token: "secret-token", CA: filepath.Join(dir, "none.pem")},
	} {
		if _, err := bus.DialNATS(a); !errors.Is(err, bus.ErrRefused) || strings.Contains(err.Error(), "-token") {
			t.Errorf("%s: %v", what, err)
		}
	}

	const public, seed = "UBBZQXDQGQM6NZCPKIKBELEW23G3JVV42S2432LOXVEHXIAB34NUNBA5", "SUABZEZTSRSC6UOJIUUI2XLQE7TLHCCFJ7VU7ISRSG67WZG2YEHC6VHPTE" // made for this test
	file := filepath.Join(dir, "seed")
	if err := os.WriteFile(file, []byte(seed), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, Nkeys: []*server.NkeyUser{{Nkey: public}}})
	if err != nil {
		t.Fatal(err)
	}
	n.Start()
	defer n.Shutdown()
	if !n.ReadyForConnections(5 * time.Second) {
		t.Fatal("it is not ready")
	}
	if c, err := bus.DialNATS(bus.Access{URL: n.ClientURL(), Nkey: file}); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	if _, err := bus.DialNATS(bus.Access{URL: n.ClientURL()}); !errors.Is(err, bus.ErrRefused) {
		t.Errorf("without an nkey: %v", err)
	}
	if _, err := bus.DialNATS(bus.Access{URL: n.ClientURL(), Nkey: cert}); !errors.Is(err, bus.ErrRefused) {
		t.Errorf("with a file that has none: %v", err)
	}
}
