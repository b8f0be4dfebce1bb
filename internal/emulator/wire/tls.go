package wire

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"slices"
	"time"
)

// NewCertificate makes a self-signed certificate for 127.0.0.1 and the given names. The emulator serves
// with config, and only the protocols in its NextProtos: h2, http/1.1. Clients trust root, which is
// in PEM.
func NewCertificate(names ...string) (config *tls.Config, root []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, fmt.Errorf("make certificate: %w", err)
	}
	config = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		NextProtos:   []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12,
	}
	return config, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// TransportTrusting returns a transport that trusts only the given root certificate.
func TransportTrusting(root []byte) *http.Transport {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(root)
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
}

// protocols returns the HTTP protocols that a TLS configuration offers.
func protocols(config *tls.Config) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(slices.Contains(config.NextProtos, "http/1.1"))
	p.SetHTTP2(slices.Contains(config.NextProtos, "h2"))
	return p
}
