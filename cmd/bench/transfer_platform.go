package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"partnerapi/db"
)

// This file measures the import of a platform as it comes out of the platform's
// tables: users in the order in which they were made, results and mails in that of
// their times, so that neighbours are lines of other users of other clients.

// eachUser is how many results and how many mails each user of the platform has: a
// year of them.
const eachUser = 12

// platform is a made-up platform: half of the users belong to one client.
type platform struct {
	users, clients int
	random         *rand.Rand
	began          time.Time
}

// platformUUID is the UUID of the n-th object of a kind. It is random but for that.
func platformUUID(kind byte, n int) string {
	r := rand.New(rand.NewPCG(uint64(kind), uint64(n)))
	a, b := r.Uint64(), r.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0xfff, b&(1<<48-1))
}

func (p *platform) client(user int) int {
	if user%2 == 0 {
		return 0
	}
	return 1 + user/2%(p.clients-1)
}

// objects writes the partner, its clients and their users.
func (p *platform) objects(to *bufio.Writer) {
	fmt.Fprintf(to, `{"object":"partner","id":%q,"name":"Platform"}`+"\n", platformUUID('p', 0))
	for n := range p.clients {
		fmt.Fprintf(to, `{"object":"client","id":%q,"partner":%q,"name":"Client %d","created_at":%q}`+"\n",
			platformUUID('c', n), platformUUID('p', 0), n, p.began.Format(time.RFC3339))
	}
	for n := range p.users {
		fmt.Fprintf(to, `{"object":"user","id":%q,"client":%q,"email":"user%d@client%d.example","first_name":"User",`+
			`"last_name":"Number %d","department":"Department %d","job_title":%q,"source":"manual","created_at":%q}`+"\n",
			platformUUID('u', n), platformUUID('c', p.client(n)), n, p.client(n), n, n%40,
			[]string{"Clerk", "Accountant", "Director"}[n%3], p.began.Add(time.Duration(n)*time.Second).Format(time.RFC3339))
	}
}

// results writes the simulated mails.
func (p *platform) results(to *bufio.Writer, templates []string) {
	for n := range eachUser * p.users {
		sent := p.time(n)
		fmt.Fprintf(to, `{"object":"phishing_result","id":%q,"user":%q,"template":%q,"sent_at":%q`,
			platformUUID('r', n), platformUUID('u', p.random.IntN(p.users)), templates[n%len(templates)], sent.Format(time.RFC3339))
		if n%2 == 0 {
			fmt.Fprintf(to, `,"opened_at":%q`, sent.Add(time.Hour).Format(time.RFC3339))
		}
		if n%8 == 0 {
			fmt.Fprintf(to, `,"clicked_at":%q`, sent.Add(2*time.Hour).Format(time.RFC3339))
		}
		if n%5 == 0 {
			fmt.Fprintf(to, `,"reported":true,"reported_at":%q`, sent.Add(3*time.Hour).Format(time.RFC3339))
		}
		fmt.Fprintln(to, "}")
	}
}

// mails writes the mails that were sent.
func (p *platform) mails(to *bufio.Writer) {
	for n := range eachUser * p.users {
		fmt.Fprintf(to, `{"object":"sent_email","id":%q,"user":%q,"event_time":%q,"from_email":"no-reply@platform.example",`+
			`"subject":"Message %d","send_method":"smtp","message_type":"training-invite"}`+"\n",
			platformUUID('m', n), platformUUID('u', p.random.IntN(p.users)), p.time(n).Format(time.RFC3339), n%50)
	}
}

// time is when the n-th of the mails was sent: they are spread over a year.
func (p *platform) time(n int) time.Time {
	const year = 365 * 24 * time.Hour
	return p.began.Add(time.Duration(p.users)*time.Second + year*time.Duration(n)/time.Duration(eachUser*p.users)).Truncate(time.Second)
}

// write writes a part of the platform to a file.
func (p *platform) write(path string, part func(to *bufio.Writer)) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	to := bufio.NewWriterSize(file, 1<<20)
	part(to)
	return errors.Join(to.Flush(), file.Close())
}

// platform measures the import of a platform into an empty database, kind by kind.
func (b *bench) platform(ctx context.Context) (results []result, err error) {
	dir, err := os.MkdirTemp("", "partnerapi-bench-platform")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	empty, err := b.data.emptyCopy(ctx)
	if err != nil {
		return nil, err
	}
	own, err := db.OwnTemplates()
	if err != nil {
		return nil, err
	}
	templates := make([]string, len(own))
	for i := range own {
		templates[i] = own[i].ID.UUID()
	}
	p := &platform{
		users: b.data.all, clients: len(b.data.clients), random: rand.New(rand.NewPCG(1, 2)),
		began: time.Now().AddDate(-2, 0, 0).Truncate(24 * time.Hour).UTC(),
	}
	for _, part := range []struct {
		what  string
		write func(*bufio.Writer)
	}{
		{"of users and their clients imported", p.objects},
		{"of results imported, in the order of their times", func(to *bufio.Writer) { p.results(to, templates) }},
		{"of sent mails imported, in the order of their times", p.mails},
	} {
		file := filepath.Join(dir, "part.ndjson")
		if err := p.write(file, part.write); err != nil {
			return nil, err
		}
		more, err := b.transferred(part.what, "import", empty, file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part.what, err)
		}
		results = append(results, more...)
	}
	_, err = b.data.db.SQL().ExecContext(ctx, "DROP DATABASE bench_import")
	return results, err
}
