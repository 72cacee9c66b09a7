package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// This file measures exports and imports (decisions 10): all of the data are written to
// a file, which is then imported into a database that is empty but for the catalogues.

// exportLines is a child that writes all objects to a file.
func exportLines(ctx context.Context, d *db.DB, p params) (report transfer.Report) {
	file := must(os.Create(p.File))
	check(transfer.Export(ctx, d, domain.PartnerID{}, transfer.Output{Objects: file}, func(_ string, n int, done bool) {
		if done {
			report.Lines += n
		}
	}))
	check(file.Close())
	return report
}

// importLines is a child that imports a file, as the command import does.
func importLines(ctx context.Context, d *db.DB, p params) transfer.Report {
	file := must(os.Open(p.File))
	defer file.Close()
	return must(transfer.Import(ctx, d, transfer.Lines(file), transfer.Watcher{
		Refused: func(line int, reason string) { fmt.Fprintf(os.Stderr, "line %d: %s\n", line, reason) },
	}))
}

// moved measures an export or an import of a database, into or from a file.
func (b *bench) moved(child, url, file string) finder {
	return func(context.Context) figure {
		got, peak := inChild[transfer.Report](b, child, params{URL: url, File: filepath.Join(b.folder, file)})
		if got.Result.Refused > 0 {
			fail("%+v", got.Result)
		}
		return rate(got.Result.Lines, got.Took).about(", %d lines", got.Result.Lines).in(peak)
	}
}

// movedBack measures the export of what was imported, which must be the same.
func (b *bench) movedBack(ctx context.Context) figure {
	f := b.moved("export", b.data.emptyURL(), "second")(ctx)
	if b.digest("first") != b.digest("second") {
		fail("the second export has other bytes than the first")
	}
	return f
}

// digest is that of one of the files.
func (b *bench) digest(name string) [sha256.Size]byte {
	file := must(os.Open(filepath.Join(b.folder, name)))
	defer file.Close()
	sum := sha256.New()
	must(io.Copy(sum, file))
	return [sha256.Size]byte(sum.Sum(nil))
}

// writeFile writes a file through a buffer.
func writeFile(path string, write func(to io.Writer)) {
	file := must(os.Create(path))
	defer file.Close()
	to := bufio.NewWriterSize(file, 1<<20)
	write(to)
	check(to.Flush())
}

// imported writes a part of a platform and measures its import.
func (b *bench) imported(write func(to io.Writer)) finder {
	return func(ctx context.Context) figure {
		writeFile(filepath.Join(b.folder, "part"), write)
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
func platformUUID(kind byte, n int) uuid.UUID {
	return uuid.NewMD5(uuid.Nil, fmt.Appendf(nil, "%c%d", kind, n))
}

func (p *platform) client(user int) int {
	if user%2 == 0 {
		return 0
	}
	return 1 + user/2%(p.clients-1)
}

// objects writes the partner, its clients and their users.
func (p *platform) objects(to io.Writer) {
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
func (p *platform) results(to io.Writer) {
	templates := must(db.OwnTemplates())
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
}

// mails writes the mails that were sent.
func (p *platform) mails(to io.Writer) {
	for n := range eachUser * p.users {
		fmt.Fprintf(to, `{"object":"sent_email","id":%q,"user":%q,"event_time":%q,"from_email":"no-reply@platform.example",`+
			`"subject":"Message %d","send_method":"smtp","message_type":"training-invite"}`+"\n",
			platformUUID('m', n), platformUUID('u', p.random.IntN(p.users)), p.sent(n).Format(time.RFC3339), n%50)
	}
}

// sent is when the n-th of the mails was sent: they are spread over a year.
func (p *platform) sent(n int) time.Time {
	const year = 365 * 24 * time.Hour
	after := year * time.Duration(n) / time.Duration(eachUser*p.users)
	return p.began.Add(time.Duration(p.users)*time.Second + after).Truncate(time.Second)
}
