package transfer_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"partnerapi/platform/transfer"
)

// table imports a table, and returns the counts and the refusals.
func (p *signalWorld) table(object, text string) (counts, refusals string) {
	p.T.Helper()
	in, err := transfer.Table(strings.NewReader(text), object)
	p.Must(err)
	w := &world{DB: p.DB, t: p.T}
	return w.runOn(transfer.Import, in)
}

// TestTable verifies that tables are read as spreadsheets write them.
func TestTable(t *testing.T) {
	t.Parallel()
	const head, row = "client,email,first_name,last_name,department", "CLIENT,jose@example.com,José,\"Núñez, \"\"Pepe\"\"\",Año"
	plain := head + "\r\n" + row + "\r\n"
	encode := func(text string, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, text := range map[string]string{
		"UTF-8":         plain,
		"a mark":        "\ufeff" + plain,
		"Latin-1":       encode(charmap.ISO8859_1.NewEncoder().String(plain)),
		"Windows-1252":  encode(charmap.Windows1252.NewEncoder().String(plain)),
		"UTF-16":        encode(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(plain)),
		"big-endian":    encode(unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder().String(plain)),
		"without mark":  encode(unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().String(plain)),
		"semicolons":    "client;email;first_name;last_name;department\nCLIENT;jose@example.com;José;\"Núñez, \"\"Pepe\"\"\";Año\n",
		"tabs":          "client\temail\tfirst_name\tlast_name\tdepartment\nCLIENT\tjose@example.com\tJosé\t\"Núñez, \"\"Pepe\"\"\"\tAño",
		"Excel's":       "sep=;\r\nclient;email;first_name;last_name;department\r\nCLIENT;jose@example.com;José;\"Núñez, \"\"Pepe\"\"\";Año\r\n",
		"blank rows":    "\r\n \r\n\"\"\r\nclient;email;first_name;last_name;department\r\nCLIENT;jose@example.com;José;\"Núñez, \"\"Pepe\"\"\";Año\r\n",
		"blank, commas": ",,,,\n\nclient;email;first_name;last_name;department\nCLIENT;jose@example.com;José;\"Núñez, \"\"Pepe\"\"\";Año\n",
		"other names":   "Client,E-Mail,First_Name,Last Name,DEPARTMENT\n" + row,
		"empty cells":   head + ",,Manager Email\n\n,,,,\n" + row + ",,,\n \n",
		"a v2 id":       head + "\n" + strings.Replace(row, "CLIENT", "CLI_ID", 1),
		"an own id":     head + ",id\n" + row + ",MADE\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newSignalWorld(t)
			client := w.AddClient()
			made := uuid.NewSHA1(uuid.UUID(client), []byte("jose@example.com")).String()
			names := strings.NewReplacer("CLIENT", client.UUID(), "CLI_ID", client.String(), "MADE", made)
			if strings.Contains(name, "UTF-16") || name == "big-endian" || name == "without mark" { // the client's id, too, is in UTF-16
				order := unicode.LittleEndian
				if name == "big-endian" {
					order = unicode.BigEndian
				}
				wide := func(text string) string {
					return encode(unicode.UTF16(order, unicode.IgnoreBOM).NewEncoder().String(text))
				}
				names = strings.NewReplacer(wide("CLIENT"), wide(client.UUID()))
			}
			if counts, refusals := w.table("user", names.Replace(text)); counts != "1 created, 0 updated, 0 unchanged, 0 refused" {
				t.Fatalf("%s\n%s", counts, refusals)
			}
			var id, got string
			w.Scan("SELECT id::text, concat_ws('|', email, first_name, last_name, department) FROM users", nil, &id, &got)
			if got != `jose@example.com|José|Núñez, "Pepe"|Año` || id != made {
				t.Errorf("stored is %s, %s", id, got)
			}
			if counts, _ := w.table("user", names.Replace(text)); counts != "0 created, 0 updated, 1 unchanged, 0 refused" {
				t.Errorf("again: %s", counts)
			}
		})
	}
}

// TestTableFaults verifies that bad rows are reported by their lines in the file, and the others are applied.
func TestTableFaults(t *testing.T) {
	t.Parallel()
	w := newSignalWorld(t)
	client := w.AddClient().String()
	rows := []string{
		"client,email,first_name,,send_welcome_email,collection_ids", // line 1
		client + ",a@example.com,\"A",
		"b\",,,",                                 // the row of line 2
		"",                                       // an empty line
		client + ",c@example.com,C,,,,,extra",    // line 5
		client + ",d@example.com,D,nameless",     // line 6
		client + ",e@example.com,E\"e,",          // line 7
		client + ",nobody,F",                     // line 8
		"nowhere,g@example.com",                  // line 9
		client + ",h@example.com,H,,maybe",       // line 10
		client + ",i@example.com,I,,No,",         // line 11
		client + ",j@example.com,J,,,\"c1, c2\"", // line 12
		client + ",k@example.com," + strings.Repeat("x", transfer.MaxLine), // line 13
		client + ",l@example.com,\"L",                                      // line 14
		"m",
	}
	counts, refusals := w.table("user", strings.Join(rows, "\n"))
	const quote = "the row has an unpaired quotation mark; if a cell contains a quotation mark, enclose the cell in quotation marks " +
		"and double the mark\n"
	want := `line 5: the row has more cells than the first row: "extra"` + "\n" + `line 6: the row has a cell in a column without a name: "nameless"` + "\n" +
		"line 7: " + quote + "line 8: email must be an email address\n" +
		"line 9: client must be a UUID, or cli_ and 26 characters; id is required\n" +
		"line 10: send_welcome_email must be true or false\n" +
		"line 12: collection_ids[0] must be a UUID, or col_ and 26 characters; collection_ids[1] must be a UUID, or col_ and 26 characters\n" +
		"line 13: the line is longer than 1048576 bytes\n" + "line 14: the row has an unclosed quotation mark; the lines from this one to line 15 were not read\n"
	// first_name of line 2 has a line feed, which names must not have
	want = "line 2: first_name must not contain control characters\n" + want
	if counts != "1 created, 0 updated, 0 unchanged, 10 refused" || refusals != want {
		t.Errorf("%s\n%s\nwant\n%s", counts, refusals, want)
	}

	in, err := transfer.Table(strings.NewReader("client,email\n\n\n\""+strings.Repeat("x,x\n", 2<<20)), "user")
	w.Must(err)
	if _, err = transfer.Try(t.Context(), w.DB, in, transfer.Watcher{}); err == nil || !strings.HasPrefix(err.Error(), "a row after line 1 has more than 4194304 bytes") {
		t.Error(err)
	}
}

// TestTableOfOtherKinds verifies that values of all types are read from cells, and ids are made.
func TestTableOfOtherKinds(t *testing.T) {
	t.Parallel()
	w := newSignalWorld(t)
	partner := "0197cafe-0000-7000-8000-000000000001"
	for _, c := range []struct{ object, text, want string }{
		{"partner", "id,name\n" + partner + ",P\n", "1 created"},
		{"course", "id,title,renewal_months,titles\n0197cafe-0000-7000-8000-000000000009,Phishing,24,\"{\"\"en\"\": \"\"Phishing\"\"}\"\n", "1 created"},
		{"client", "Partner,Name,Dark Web Monitoring,program\n" + partner + ",Acme,no,0197cafe-0000-7000-8000-000000000009\n" + partner + ",Bolt,TRUE,\n", "2 created"},
		{"admin", "partner,email,name,role,created_at\n" + partner + ",a@example.com,A,owner,2025-01-02T03:04:05Z\n", "1 created"},
	} {
		if counts, refusals := w.table(c.object, c.text); !strings.HasPrefix(counts, c.want) || refusals != "" {
			t.Fatalf("%s: %s\n%s", c.object, counts, refusals)
		}
	}
	acme := uuid.NewSHA1(uuid.MustParse(partner), []byte("client acme")).String()
	if n := w.Number("SELECT count(*) FROM clients WHERE id = $1 AND NOT dark_web_monitoring", acme); n != 1 {
		t.Error("the client has another id, or watches the dark web")
	}
	if _, err := transfer.Table(strings.NewReader(""), "users"); err == nil || !strings.Contains(err.Error(), `"users" is not a kind of object; it must be one of partner,`) {
		t.Error(err)
	}
}

// TestFormats verifies that an input of another format gets one message that says so, and nothing of it is applied.
func TestFormats(t *testing.T) {
	t.Parallel()
	w := newSignalWorld(t)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	fmt.Fprintln(z, "{}")
	w.Must(z.Close())
	utf16, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String("{}\n")
	w.Must(err)
	object := `{"object":"partner","id":"0197cafe-0000-7000-8000-000000000001","name":"P"}`
	for name, c := range map[string]struct {
		text, csv, want string
	}{
		"gzip":             {zipped.String(), zipped.String(), "compressed with gzip"},
		"UTF-16":           {utf16, "", "is in UTF-16"},
		"no mark":          {utf16[2:], "", "is in UTF-16"},
		"a spreadsheet":    {"PK\x03\x04rest", "PK\x03\x04rest", "save the sheet as CSV"},
		"zstd":             {"\x28\xb5\x2f\xfdrest", "", "compressed with zstd"},
		"pretty":           {"\n{\n  \"object\": \"partner\"\n}\n", "", "one object per line"},
		"a list":           {"[" + object + "]", "", "one object per line"},
		"a pretty list":    {"[\n" + object + "\n]\n", "", "one object per line"},
		"a first field":    {"{\"object\":\"partner\",\n\n \"name\":\"P\"}\n" + object + "\n", "", "one object per line"},
		"a first brace":    {"{ \"name\":\"P\"\n}\n", "", "one object per line"},
		"a cut line":       {"{\"object\":\"part\n" + object, "", ""},
		"a cut file":       {"{\"object\":\"part\n\n", "", ""},
		"JSON as a table":  {"", "\n" + object + "\n", "omit --csv"},
		"a list as table":  {"", "\ufeff[" + object + "]", "omit --csv"},
		"nothing":          {"", "", ""},
		"an empty table":   {"", "\n , \n", "the table is empty"},
		"no such field":    {"", "client,E-Mail,Nickname,\"First Name\",firstname\n", `line 1: the first row contains names that are not fields of user or are repeated: "Nickname", "firstname"; the fields are id, client, email,`},
		"two bytes":        {"\xff\xfe", "", "is in UTF-16"},
		"a line that ends": {"{} \n" + object, "", ""},
	} {
		check := func(what string, err error) {
			t.Helper()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, new(transfer.FormatError))) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		if c.text != "" || c.want == "" {
			_, err := transfer.Try(t.Context(), w.DB, transfer.Lines(strings.NewReader(c.text)), transfer.Watcher{})
			check("import", err)
			_, err = transfer.Ingest(t.Context(), w.DB, strings.NewReader(c.text), transfer.Watcher{})
			check("ingest", err)
		}
		if c.csv != "" {
			in, err := transfer.Table(strings.NewReader(c.csv), "user")
			w.Must(err)
			_, err = transfer.Try(t.Context(), w.DB, in, transfer.Watcher{})
			check("table", err)
		}
	}
	if n := w.Number("SELECT count(*) FROM partners WHERE name = 'P'"); n != 0 {
		t.Error("a partner was made")
	}
	if err := transfer.CheckText([]byte(utf16)); !strings.Contains(fmt.Sprint(err), "UTF-16") {
		t.Error(err)
	}
}
