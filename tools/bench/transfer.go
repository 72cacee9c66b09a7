package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// This file measures exports and imports (decisions 10): all of the data are written to
// a file, which is then imported into a database that is empty but for the catalogues.

// exportLines is a child that writes all objects to a file.
func exportLines(ctx context.Context, d *db.DB, p params) (report transfer.Report, err error) {
	file, err := os.Create(p.File)
	if err != nil {
		return report, err
	}
	err = transfer.Export(ctx, d, domain.PartnerID{}, transfer.Output{Objects: file}, func(_ string, n int, done bool) {
		if done {
			report.Lines += n
		}
	})
	return report, errors.Join(err, file.Close())
}

// importLines is a child that imports a file, as the command import does.
func importLines(ctx context.Context, d *db.DB, p params) (transfer.Report, error) {
	file, err := os.Open(p.File)
	if err != nil {
		return transfer.Report{}, err
	}
	defer file.Close()
	return transfer.Import(ctx, d, file, transfer.Watcher{
		Refused: func(line int, reason string) { fmt.Fprintf(os.Stderr, "line %d: %s\n", line, reason) },
	})
}

// moved measures an export or an import of a database, into or from a file.
func (b *bench) moved(child, url, file string) finder {
	return func(context.Context) (figure, error) {
		got, peak, err := inChild[transfer.Report](b, child, params{URL: url, File: filepath.Join(b.folder, file)})
		if err == nil && got.Result.Refused > 0 {
			err = fmt.Errorf("%+v", got.Result)
		}
		f := rate(got.Result.Lines, got.Took)
		f.of = fmt.Sprintf(", %d lines", got.Result.Lines)
		return f.in(peak), err
	}
}

// movedBack measures the export of what was imported, which must be the same.
func (b *bench) movedBack(ctx context.Context) (figure, error) {
	f, err := b.moved("export", b.data.emptyURL(), "second")(ctx)
	if err != nil {
		return f, err
	}
	first, err := digest(filepath.Join(b.folder, "first"))
	if err != nil {
		return f, err
	}
	second, err := digest(filepath.Join(b.folder, "second"))
	if err == nil && !bytes.Equal(first, second) {
		err = errors.New("the second export has other bytes than the first")
	}
	return f, err
}

func digest(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	return sum.Sum(nil), err
}

// writeFile writes a file through a buffer.
func writeFile(path string, write func(to io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	to := bufio.NewWriterSize(file, 1<<20)
	return errors.Join(write(to), to.Flush(), file.Close())
}

// imported writes a part of a platform and measures its import.
func (b *bench) imported(write func(to io.Writer) error) finder {
	return func(ctx context.Context) (figure, error) {
		if err := writeFile(filepath.Join(b.folder, "part"), write); err != nil {
			return figure{}, err
		}
		return b.moved("import", b.data.emptyURL(), "part")(ctx)
	}
}

// eachUser is how many results and how many mails each user of the platform has: a
// year of them.
const eachUser = 12

// platform is a made-up platform as it comes out of the platform's tables: users in
// the order in which they were made, results and mails in that of their times, so that
// neighbours are lines of other users of other clients. Half of the users belong to one
// client.
type platform struct {
	users, clients int
	random         *rand.Rand
	began          time.Time
}

// newPlatform has half as many users as the data.
func (b *bench) newPlatform() *platform {
	return &platform{
		users: b.data.all / 2, clients: len(b.data.clients), random: rand.New(rand.NewPCG(1, 2)),
		began: time.Now().AddDate(-2, 0, 0).Truncate(24 * time.Hour).UTC(),
	}
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
func (p *platform) objects(to io.Writer) error {
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
	return nil
}

// results writes the simulated mails.
func (p *platform) results(to io.Writer) error {
	templates, err := db.OwnTemplates()
	if err != nil {
		return err
	}
	for n := range eachUser * p.users {
		sent := p.sent(n)
		fmt.Fprintf(to, `{"object":"phishing_result","id":%q,"user":%q,"template":%q,"sent_at":%q`, platformUUID('r', n),
			platformUUID('u', p.random.IntN(p.users)), templates[n%len(templates)].ID.UUID(), sent.Format(time.RFC3339))
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
	return nil
}

// mails writes the mails that were sent.
func (p *platform) mails(to io.Writer) error {
	for n := range eachUser * p.users {
		fmt.Fprintf(to, `{"object":"sent_email","id":%q,"user":%q,"event_time":%q,"from_email":"no-reply@platform.example",`+
			`"subject":"Message %d","send_method":"smtp","message_type":"training-invite"}`+"\n",
			platformUUID('m', n), platformUUID('u', p.random.IntN(p.users)), p.sent(n).Format(time.RFC3339), n%50)
	}
	return nil
}

// sent is when the n-th of the mails was sent: they are spread over a year.
func (p *platform) sent(n int) time.Time {
	const year = 365 * 24 * time.Hour
	after := year * time.Duration(n) / time.Duration(eachUser*p.users)
	return p.began.Add(time.Duration(p.users)*time.Second + after).Truncate(time.Second)
}
