// Consume, transform, produce, in transactions: program SETTINGS
//
// SETTINGS are JSON. Members of one group, each with a transactional id of its own, copy the source
// to the target until Count records are committed. Some transactions are aborted before anything
// of them was sent, right after another was committed; their records are read again.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const (
	pollMax    = 20
	pollWait   = 200 * time.Millisecond
	abortEvery = 3
)

type settings struct {
	Bootstrap             []string
	Source, Target, Group string
	Members, Count        int
	Consumer              bool // a group of the consumer protocol (KIP-848)
	CA, User, Password    string
	Mechanism             string // none: no login, and no TLS
}

// access says how to reach the cluster.
func (given settings) access() []kgo.Opt {
	seeds := kgo.SeedBrokers(given.Bootstrap...)
	if given.Mechanism == "" {
		return []kgo.Opt{seeds}
	}
	if given.Mechanism != "SCRAM-SHA-512" {
		fail(fmt.Errorf("no login by %s", given.Mechanism))
	}
	authorities, err := os.ReadFile(given.CA)
	fail(err)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authorities) {
		fail(fmt.Errorf("no certificates in %s", given.CA))
	}
	login := scram.Auth{User: given.User, Pass: given.Password}.AsSha512Mechanism()
	encryption := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return []kgo.Opt{seeds, kgo.DialTLSConfig(encryption), kgo.SASL(login)}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func copyRecords(ctx context.Context, given settings, member int, committed *atomic.Int64) {
	options := append(given.access(),
		kgo.ConsumerGroup(given.Group),
		kgo.ConsumeTopics(given.Source),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.TransactionalID(fmt.Sprint(given.Group, "-", member)),
		kgo.DefaultProduceTopic(given.Target),
	)
	if given.Consumer {
		options = append(options, kgo.ServerSideBalancer())
	}
	session, err := kgo.NewGroupTransactSession(options...)
	fail(err)
	defer session.Close()
	for number := 1; committed.Load() < int64(given.Count); number++ {
		fail(ctx.Err())
		waiting, cancel := context.WithTimeout(ctx, pollWait)
		fetches := session.PollRecords(waiting, pollMax)
		cancel()
		records := fetches.Records()
		if len(records) == 0 {
			continue
		}
		fail(session.Begin())
		for _, record := range records {
			value := append([]byte("copy of "), record.Value...)
			session.Produce(ctx, &kgo.Record{Key: record.Key, Value: value}, nil)
		}
		end := kgo.TransactionEndTry(number%abortEvery != 0)
		done, err := session.End(ctx, end)
		fail(err)
		if done {
			committed.Add(int64(len(records)))
		}
	}
}

func main() {
	var given settings
	fail(json.Unmarshal([]byte(os.Args[1]), &given))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var committed atomic.Int64
	var members sync.WaitGroup
	for member := range given.Members {
		members.Go(func() { copyRecords(ctx, given, member, &committed) })
	}
	members.Wait()
	fmt.Println(committed.Load())
}
