// Clients in Go on a node that asks who they are: program CLIENT SCENARIO SETTINGS
//
// CLIENT is franz or sarama, SETTINGS are JSON. Prints what it saw, a line a step, and judges
// nothing: a step that failed is seen as its error.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

type settings struct {
	Bootstrap, Ca, User, Password, Mechanism, Topic, Group string
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func (s settings) tls() *tls.Config {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(must(os.ReadFile(s.Ca))) {
		panic("no certificate in " + s.Ca)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// saw prints a step.
func saw(step string, value any, err error) {
	if err != nil {
		fmt.Printf("%s: error %v\n", step, err)
		return
	}
	fmt.Printf("%s: %v\n", step, value)
}

// until asks again until the answer is no longer empty: what is decided is soon known to all.
func until[T any](ask func() ([]T, error)) ([]T, error) {
	for attempt := 0; ; attempt++ {
		found, err := ask()
		if err != nil || len(found) > 0 || attempt == 50 {
			return found, err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func main() {
	var given settings
	if err := json.Unmarshal([]byte(os.Args[3]), &given); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	switch os.Args[1] + " " + os.Args[2] {
	case "franz administer":
		franzAdministers(ctx, given)
	case "franz carry":
		franzCarries(ctx, given)
	case "sarama administer":
		saramaAdministers(given)
	case "sarama carry":
		saramaCarries(ctx, given)
	default:
		panic(os.Args[1:])
	}
}
