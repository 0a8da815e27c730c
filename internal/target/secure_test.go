package target

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitot/internal/say"
)

// identity is a certificate with its key, PEM.
func identity(t *testing.T, until time.Time) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(7), NotAfter: until, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs})
}

// written puts data into a file of its own.
func written(t *testing.T, name string, data ...[]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	var all []byte
	for _, d := range data {
		all = append(all, d...)
	}
	if err := os.WriteFile(path, all, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A server that asks who its clients are is shown a certificate, and a refusal
// says what is missing.
func TestClientCertificate(t *testing.T) {
	cert, private := identity(t, time.Now().Add(time.Hour))
	other, _ := identity(t, time.Now().Add(time.Hour))
	known := x509.NewCertPool()
	known.AppendCertsFromPEM(cert)
	certFile, keyFile, both := written(t, "cert.pem", cert), written(t, "key.pem", private), written(t, "both.pem", cert, private)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		srv := httptest.NewUnstartedServer(&scripted{models: oneModel, count: func(n int) int { return n }})
		srv.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known, MaxVersion: version}
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		srv.StartTLS()
		defer srv.Close()
		for _, args := range [][]string{{"--cert", certFile, "--key", keyFile}, {"--cert", both}} {
			if _, err := Open(t.Context(), planned(t, append(args, "--insecure", srv.URL, "--rate", "1")...), func(string) {}); err != nil {
				t.Errorf("%s: %v", args, err)
			}
		}
		_, err := Open(t.Context(), planned(t, "--insecure", srv.URL, "--rate", "1"), func(string) {})
		var failed *Error
		if !errors.As(err, &failed) || !strings.Contains(failed.Msg, "cannot be measured (tls)") || !strings.Contains(failed.Msg, "tls: ") || failed.Hint != "the server asks for a certificate of the client: --cert FILE --key FILE" {
			t.Errorf("%#x: %#v", version, err)
		}
	}
	legacy := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED"}, Bytes: []byte("x")})
	for _, c := range []struct {
		args      []string
		msg, hint string
	}{
		{[]string{"--cert", "/nowhere/c.pem"}, "/nowhere/c.pem", "-----BEGIN CERTIFICATE-----"},
		{[]string{"--cert", keyFile}, "no certificate in " + keyFile, "-----BEGIN CERTIFICATE-----"},
		{[]string{"--cert", certFile}, "no private key in " + certFile, "--key names a file with the private key"},
		{[]string{"--cert", certFile, "--key", certFile}, "no private key in " + certFile, "API key comes from --key-env"},
		{[]string{"--cert", certFile, "--key", "sk-very-secret-12345"}, "read --key: there is no such file", "API key comes from --key-env"},
		{[]string{"--cert", certFile, "--key", "/nowhere/k.pem"}, "/nowhere/k.pem", "private key of --cert"},
		{[]string{"--cert", written(t, "other.pem", other), "--key", keyFile}, "does not belong to the certificate in ", "first certificate"},
		{[]string{"--cert", certFile, "--key", written(t, "locked.pem", pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")}))}, "is encrypted", "openssl pkey -in "},
		{[]string{"--cert", certFile, "--key", written(t, "legacy.pem", legacy)}, "is encrypted", "openssl pkey -in "},
		{[]string{"--cert", certFile, "--key", written(t, "torn.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))}, "cannot be used: ", "PEM"},
	} {
		p := planned(t, append(c.args, "https://localhost:1", "--rate", "1")...)
		err := Check(p)
		var mistake *say.Error
		if !errors.As(err, &mistake) || !strings.Contains(mistake.Msg, c.msg) || !strings.Contains(mistake.Hint, c.hint) || strings.Contains(mistake.Msg+mistake.Hint, "secret") {
			t.Errorf("%s: %v, hint %q", c.args, err, say.HintOf(err))
		}
	}
	if err := Check(planned(t, "--cert", both, "http://localhost:1", "--rate", "1")); err == nil || !strings.Contains(err.Error(), "without TLS") {
		t.Errorf("without TLS: %v", err)
	}
	old, oldKey := identity(t, time.Now().Add(-time.Hour))
	expired := &Target{}
	p := planned(t, "--cert", written(t, "old.pem", old, oldKey), "https://localhost:1", "--rate", "1")
	e, _, err := parseTarget(p.Spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := expired.configureTLS(&e, p.Target); err != nil || len(expired.Notes) != 1 || !strings.Contains(expired.Notes[0], "was good until") {
		t.Errorf("%v, %q", err, expired.Notes)
	}
}

// Whoever accepts connections and says nothing is waited for no longer than
// --timeout, and what had no answer is named.
func TestHangs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, c) }()
		}
	}()
	for _, c := range []struct {
		args      []string
		msg, hint string
	}{
		{[]string{"https://" + l.Addr().String()}, "(timeout): connect to " + l.Addr().String() + ": no answer to the TLS handshake in time", "does the server speak HTTPS there? try curl http://"},
		{[]string{"http://example.test", "--set", "proxy=http://" + l.Addr().String()}, "(proxy): proxy " + l.Addr().String() + ": no answer to CONNECT in time", "let example.test:80 through"},
		{[]string{"http://" + l.Addr().String()}, "(timeout): ", "--wait-ready"},
	} {
		begin := time.Now()
		_, err := Open(t.Context(), planned(t, append(c.args, "--rate", "1", "--timeout", "100ms")...), func(string) {})
		var failed *Error
		if !errors.As(err, &failed) || !strings.Contains(failed.Msg, c.msg) || !strings.Contains(failed.Hint, c.hint) {
			t.Errorf("%s: %#v", c.args, err)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%s: %v", c.args, took)
		}
	}
}
