package target

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"time"

	"pitot/internal/client"
	"pitot/internal/config"
	"pitot/internal/say"
	"pitot/internal/say/unreadable"
	"pitot/internal/userfile"
)

// configureTLS sets up TLS and the proxy.
func (t *Target) configureTLS(e *client.Endpoint, p *config.Target) error {
	e.Config = &tls.Config{InsecureSkipVerify: p.Insecure}
	if p.CACert != "" {
		data, err := userfile.Read(p.CACert, userfile.MostPEM)
		if err != nil {
			return unreadable.FileError("--ca-cert", p.CACert, err, "a file of certificates, PEM: -----BEGIN CERTIFICATE-----")
		}
		e.Config.RootCAs = x509.NewCertPool()
		if !e.Config.RootCAs.AppendCertsFromPEM(data) {
			return say.Errorf("no certificate in %s", p.CACert).WithHint("it should begin with -----BEGIN CERTIFICATE-----")
		}
	}
	if p.Cert != "" {
		if !e.TLS {
			return say.Errorf("--cert has no meaning for a target without TLS").WithHint("its URL should begin with https://")
		}
		own, err := readCertificate(p.Cert, p.Key)
		if err != nil {
			return err
		}
		if end := own.Leaf.NotAfter; time.Now().After(end) {
			t.Notes = append(t.Notes, fmt.Sprintf("the certificate in %s was good until %s", p.Cert, end.Format(time.DateOnly)))
		}
		e.Config.Certificates = []tls.Certificate{own}
		t.certificate = true
	}
	if p.Proxy != "" {
		u, err := url.Parse(p.Proxy)
		if err != nil {
			return say.Errorf("--set proxy: malformed URL").WithHint("for example http://proxy.example:3128")
		}
		e.Proxy = u
	}
	return nil
}

// readCertificate reads this client's certificate and its private key, from the same
// file where key is "".
func readCertificate(cert, key string) (tls.Certificate, error) {
	const certHint = "a file with this client's certificate, PEM: -----BEGIN CERTIFICATE-----"
	const keyHint = "a file with the private key of --cert, PEM: -----BEGIN PRIVATE KEY-----; an API key comes from --key-env VAR or --key-file FILE"
	certData, err := userfile.Read(cert, userfile.MostPEM)
	if err != nil {
		return tls.Certificate{}, unreadable.FileError("--cert", cert, err, certHint)
	}
	if blocks := blocksOf(certData); !blocks["CERTIFICATE"] {
		return tls.Certificate{}, say.Errorf("no certificate in %s", cert).WithHint("--cert names " + certHint)
	}
	keyData, from := certData, cert
	if key != "" {
		if keyData, err = userfile.Read(key, userfile.MostPEM); err != nil {
			if errors.Is(err, fs.ErrNotExist) && config.MayBeKey(key) {
				return tls.Certificate{}, say.Errorf("read --key: there is no such file").WithHint("it names " + keyHint)
			}
			return tls.Certificate{}, unreadable.FileError("--key", key, err, keyHint)
		}
		from = key
	}
	switch blocks := blocksOf(keyData); {
	case blocks["ENCRYPTED PRIVATE KEY"], strings.Contains(string(keyData), "Proc-Type: 4,ENCRYPTED"):
		return tls.Certificate{}, say.Errorf("the private key in %s is encrypted", from).WithHint("write it without a passphrase: openssl pkey -in " + from + " -out plain.pem")
	case !blocks["PRIVATE KEY"] && !blocks["RSA PRIVATE KEY"] && !blocks["EC PRIVATE KEY"]:
		hint := "--key names " + keyHint
		return tls.Certificate{}, say.Errorf("no private key in %s", from).WithHint(hint)
	}
	pair, err := tls.X509KeyPair(certData, keyData)
	switch {
	case err == nil:
		return pair, nil
	case strings.Contains(err.Error(), "does not match"):
		return pair, say.Errorf("the private key in %s does not belong to the certificate in %s", from, cert).WithHint("the first certificate of --cert is this client's own; those of authorities follow it")
	}
	return pair, say.Errorf("the certificate in %s and the private key in %s cannot be used: %s", cert, from, strings.TrimPrefix(err.Error(), "tls: ")).WithHint("both are PEM, as openssl writes them")
}

// blocksOf lists the types of the blocks of a PEM file.
func blocksOf(data []byte) map[string]bool {
	types := map[string]bool{}
	for b, rest := pem.Decode(data); b != nil; b, rest = pem.Decode(rest) {
		types[b.Type] = true
	}
	return types
}
