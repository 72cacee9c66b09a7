package operator

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
)

var wholeKey = regexp.MustCompile(`^papi_[A-Za-z0-9]{40}\n$`)

// newKey creates a key, and wants that to be printed and nothing else.
func (c *console) newKey(args ...string) string {
	c.t.Helper()
	out, errs, err := c.run(c.t.Context(), nil, append([]string{"keys", "create"}, args...)...)
	if err != nil || errs != "" || !wholeKey.MatchString(out) {
		c.t.Fatalf("keys create %v: printed %q and %q: %v", args, out, errs, err)
	}
	return strings.TrimSpace(out)
}

func TestPartners(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	id := strings.TrimSpace(c.must("partners", "create", "Acme GmbH"))
	c.must("partners", "create", "Ümläut")
	list := c.must("partners", "list")
	if !regexp.MustCompile(`(?m)^Acme GmbH +0 +\d{4}-\d\d-\d\d +- +`+regexp.QuoteMeta(id)+`$`).MatchString(list) || !strings.Contains(list, "\nÜmläut ") {
		t.Errorf("%s is created, and the list is\n%s", id, list)
	}
	c.refused(false, []string{"partners", "create", "ACME gmbh"}, "exist")
}

// TestKeyLife: a key is what the flags say, is listed without its secret, and is revoked once.
// That it is used and refused so are TestLastUse and TestRevocation of v2.
func TestKeyLife(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	key := c.newKey("--name=sync", "--clients=all", "--scopes=read,write", "--expires=2199-01-31", "--from=127.1.2.3/8, ::1")
	prefix := key[:13]
	c.Exec("UPDATE api_keys SET last_used_at = '2031-02-03'")
	c.says([]string{"keys", "list"}, prefix, "sync", "Partner", "all", "read,write", "127.0.0.0/8,::1/128", "2199-01-31 00:00Z", "2031-02-03")
	if list := c.must("keys", "list"); strings.Contains(list, key[:14]) {
		t.Errorf("the list shows more than the prefix:\n%s", list)
	}
	c.must("keys", "revoke", prefix)
	c.refused(false, []string{"keys", "revoke", prefix}, prefix, "keys list")
	c.refused(false, []string{"keys", "revoke", "pk_unknown0"}, "pk_unknown0", "keys list")
}

// TestMadeInJSON: what partners create and keys create print can be read by programs.
func TestMadeInJSON(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	var partner struct{ ID, Name string }
	var key struct {
		Key, Prefix, Name string
		PartnerID         string `json:"partner_id"`
		Scopes            []string
		ExpiresAt         *string `json:"expires_at"`
	}
	c.Must(json.Unmarshal([]byte(c.must("partners", "create", "Acme", "--json")), &partner))
	c.Must(json.Unmarshal([]byte(c.must("keys", "create", "--partner=acme", "--name=sync", "--clients=all", "--scopes=read,write",
		"--expires=2199-01-31", "--json")), &key))
	if partner.Name != "Acme" || partner.ID != key.PartnerID {
		t.Errorf("the partner is %+v", partner)
	}
	c.says([]string{"partners", "list"}, partner.ID)
	if !wholeKey.MatchString(key.Key+"\n") || key.Prefix != key.Key[:13] || key.Name != "sync" || len(key.Scopes) != 2 ||
		*key.ExpiresAt != "2199-01-31T00:00:00.000000Z" {
		t.Errorf("the key is %+v", key)
	}
}

// TestKeyOfClients: a key reaches the clients that were named, all of one partner.
func TestKeyOfClients(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	one, two := c.AddClient(), c.AddClient()
	create := []string{"keys", "create", "--name=x", "--scopes=read"}
	c.must("partners", "create", "Northlight Demo MSP")
	c.newKey("--partner=partner", "--name=two", "--clients="+one.String()+", "+two.UUID(), "--scopes=read") // names are compared by their keys
	var reached int
	c.Scan("SELECT count(*) FROM api_key_clients WHERE client_id IN ($1, $2)", []any{one, two}, &reached)
	if reached != 2 {
		t.Errorf("the key reaches %d clients", reached)
	}
	c.refused(false, append(create, "--clients=all"), "2 partners", "--partner")
	c.refused(false, append(create, "--clients=all", "--partner=Nobody"), `"Nobody"`, "partners list")
	c.refused(false, append(create, "--partner=Northlight Demo MSP", "--clients="+one.String()), "must be clients of the partner")
	c.refused(false, append(create, "--partner=partner", "--clients="+one.String()+","+one.UUID()), "given once")
	c.refused(false, append(create, "--partner=partner", "--clients="+domain.ClientID{1}.String()), "clients")
	c.Exec("TRUNCATE partners CASCADE")
	c.refused(false, append(create, "--clients=all"), "0 partners", "partners create")
}

// TestKeyFlags: no database is needed to see that these make no sense.
func TestKeyFlags(t *testing.T) {
	t.Parallel()
	c := &console{t: t, flag: "--database-url=none"}
	for _, tt := range []struct{ args, says string }{
		{"--clients=all|--scopes=admin", `"admin"`},
		{"--clients=all|--scopes=read,Write", `"Write"`},
		{"--clients=|--scopes=read", "--clients"},
		{"--clients=all|--scopes=", "--scopes"},
		{"--clients=all", "--scopes"},
		{"--clients=all|--scopes=read|--expires=31.1.2027", "--expires"},
		{"--clients=all|--scopes=read|--expires=2027-02-30", "--expires"},
		{"--clients=all|--scopes=read|--expires=2020-01-01", "not after today"},
		{"--clients=all|--scopes=read|--name=a\tb", "control character"},
		{"--clients=all|--scopes=read|--name= ", "--name"},
		{"--clients=all|--scopes=read|--from=office", "--from"},
		{"--clients=all|--scopes=read|--from=10.0.0.0/33", "--from"},
		{"--clients=all|--scopes=read|--from=fe80::1%eth0", "--from"},
		{"--clients=all|--scopes=read|--from=::ffff:10.0.0.0/104", "--from"},
		{"--clients=all|--scopes=read|--from=10.0.0.1,,", "--from"},
	} {
		c.refused(true, append([]string{"keys", "create", "--name=x"}, strings.Split(tt.args, "|")...), tt.says)
	}
	c.refused(true, []string{"keys", "revoke"}, "prefix")
}

// clientUUIDs returns the ids as PostgreSQL reads them.
func clientUUIDs(ids []domain.ClientID) []string {
	texts := []string{}
	for _, id := range ids {
		texts = append(texts, id.UUID())
	}
	return texts
}

// TestWebhooksCover verifies that webhooks list shows how many clients a webhook covers: those of its filter that its key
// has access to.
func TestWebhooksCover(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	one, two, three := c.AddClient(), c.AddClient(), c.AddClient()
	wide := c.newKey("--name=wide", "--clients=all", "--scopes=read")
	narrow := c.newKey("--name=narrow", "--clients="+one.String()+","+two.String(), "--scopes=read")
	for _, tt := range []struct {
		key, column string
		filter      []domain.ClientID
		clients     int
	}{
		{wide, "  all  ", nil, 0}, {wide, "  3  ", []domain.ClientID{one, two, three}, 3},
		{narrow, "  2  ", nil, 2}, {narrow, "  1  ", []domain.ClientID{one, three}, 1},
	} {
		c.Exec("DELETE FROM webhooks")
		c.Exec(`INSERT INTO webhooks (partner_id, id, key_id, url, events, client_ids, status, created_at, updated_at, secret)
			SELECT partner_id, gen_random_uuid(), id, 'https://hook.example', '{user.updated}', $1::uuid[], 'active', now(), now(), '' FROM api_keys WHERE prefix = $2`,
			clientUUIDs(tt.filter), tt.key[:13])
		c.says([]string{"webhooks", "list"}, tt.column)
		var list []struct {
			AllClients bool `json:"all_clients"`
			Clients    int
			ClientIDs  []domain.ClientID `json:"client_ids"`
		}
		c.Must(json.Unmarshal([]byte(c.must("webhooks", "list", "--json")), &list))
		if h := list[0]; h.AllClients != (tt.clients == 0) || h.Clients != tt.clients || len(h.ClientIDs) != len(tt.filter) {
			t.Errorf("key %s, filter %v: got %+v", tt.key[:13], tt.filter, h)
		}
	}
}

// TestRotateKey verifies that keys rotate prints a new text and nothing else, that commands take the prefixes of both
// texts, and that keys revoke names the webhooks that end with the key.
func TestRotateKey(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	first := c.newKey("--name=sync", "--clients=all", "--scopes=read,write")
	out, errs, err := c.run(c.t.Context(), nil, "keys", "rotate", first[:13])
	if err != nil || errs != "" || !wholeKey.MatchString(out) || out[:13] == first[:13] {
		t.Fatalf("printed %q and %q: %v", out, errs, err)
	}
	second := out[:13]
	c.says([]string{"keys", "list"}, second, first[:13]+" until ")
	var made struct {
		Key, Prefix string
		OldPrefix   string  `json:"old_prefix"`
		OldUntil    string  `json:"old_until"`
		ExpiresAt   *string `json:"expires_at"`
	}
	out, errs, err = c.run(c.t.Context(), nil, "keys", "rotate", first[:13], "--old-until=36h", "--expires=2199-01-31", "--json")
	if err != nil || !strings.Contains(errs, first[:13]) {
		t.Errorf("the text that is ended is not named: %q, %v", errs, err)
	}
	c.Must(json.Unmarshal([]byte(out), &made))
	if made.Prefix != made.Key[:13] || made.OldPrefix != second || made.OldUntil == "" || made.ExpiresAt == nil {
		t.Errorf("printed %s", out)
	}
	c.says([]string{"keys", "rotate", made.Prefix, "--end-old"}, second)
	c.refused(false, []string{"keys", "rotate", made.Prefix, "--end-old"}, "no old secret")
	c.refused(false, []string{"keys", "rotate", "papi_00nobody"}, "keys list")
	for flags, says := range map[string]string{
		"--old-until=1y": "--old-until", "--old-until=-1h": "must not be negative", "--old-until -1h": "must not be negative", "--old-until -7d": "must not be negative", "--end-old --old-until=7d": "--old-until", "--end-old --old-until=0s": "--old-until", "--old-until=400d": "365d", "--expires=2020-01-01": "not after today",
		"--end-old --json": "--json", "--end-old --expires=2199-01-01": "--expires",
	} {
		c.refused(true, append([]string{"keys", "rotate", made.Prefix}, strings.Fields(flags)...), says)
	}

	id := db.NewID[domain.WebhookKind]()
	c.Exec(`INSERT INTO webhooks (partner_id, id, key_id, url, events, status, created_at, updated_at, secret)
		SELECT partner_id, $1, id, 'https://hook.example', '{user.updated}', 'active', now(), now(), '' FROM api_keys WHERE prefix = $2`, id, made.Prefix)
	c.says([]string{"webhooks", "list"}, "2199-01-31")
	c.says([]string{"keys", "revoke", second}, id.String(), "PATCH")
	c.says([]string{"webhooks", "list"}, "revoked ")
	c.Exec("UPDATE webhooks SET status = 'disabled', disabled_reason = 'key_revoked'")
	c.says([]string{"webhooks", "list"}, "disabled (key_revoked)")
	c.refused(false, []string{"webhooks", "resume", id.String()}, "was revoked")
	c.refused(false, []string{"keys", "rotate", made.Prefix}, "revoked")
}
