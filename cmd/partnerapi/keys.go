package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"partnerapi/db"
	"partnerapi/domain"
)

type partnersCmd struct {
	Create createPartnerCmd `cmd:"" help:"Create a partner."`
	List   listPartnersCmd  `cmd:"" help:"List the partners."`
}

type createPartnerCmd struct {
	databaseFlags
	Name string `arg:"" help:"The partner's name."`
}

// Validate refuses a name that is none.
func (c createPartnerCmd) Validate() error { return validName("the partner's name", c.Name) }

// maxName is how many characters a name may have (decisions 2.5).
const maxName = 200

func validName(what, name string) error {
	if n := utf8.RuneCountInString(name); strings.TrimSpace(name) == "" || n > maxName ||
		strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Errorf("%s must have 1 to %d characters, none of them a control character, and "+
			"not be blank", what, maxName)
	}
	return nil
}

// Run creates a partner.
func (c createPartnerCmd) Run(ctx context.Context, s streams) (err error) {
	d, shut, err := c.open(ctx, s.err)
	if err != nil {
		return err
	}
	defer closing(shut, &err)
	id, err := d.InsertPartner(ctx, c.Name)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.out, id)
	return err
}

type listPartnersCmd struct {
	databaseFlags
}

// Run lists the partners.
func (c listPartnersCmd) Run(ctx context.Context, s streams) (err error) {
	d, shut, err := c.open(ctx, s.err)
	if err != nil {
		return err
	}
	defer closing(shut, &err)
	all, err := d.Partners(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(s.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tCLIENTS\tCREATED\tID")
	for _, p := range all {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", p.Name, p.Clients, p.CreatedAt.Format(time.DateOnly), p.ID)
	}
	return w.Flush()
}

type keysCmd struct {
	Create createKeyCmd `cmd:"" help:"Create a key, and print it and nothing else. It cannot be read again."`
	List   listKeysCmd  `cmd:"" help:"List the keys, without their secrets."`
	Revoke revokeKeyCmd `cmd:"" help:"End a key. Running services refuse it within 30 seconds."`
}

type createKeyCmd struct {
	databaseFlags
	Name    string         `required:"" env:"-" help:"What the key is for."`
	Partner string         `env:"-" help:"The partner's name; may be left out where there is only one."`
	Clients string         `required:"" env:"-" placeholder:"all|ID,ID" help:"The clients that the key reaches."`
	Scopes  []domain.Scope `required:"" env:"-" placeholder:"read,write" help:"What the key may do."`
	From    []string       `env:"-" placeholder:"CIDR,…" help:"The networks or addresses that the key may be used from, up to 100. Default: all."`
	Expires string         `env:"-" placeholder:"DATE" help:"The day (UTC) from which the key no longer works, as 2027-01-31."`
}

// Validate refuses a name, scopes, ids and a date that are none.
func (c createKeyCmd) Validate() error {
	if err := validName("--name", c.Name); err != nil {
		return err
	}
	_, err := c.wanted()
	return err
}

// Run creates a key and prints it.
func (c createKeyCmd) Run(ctx context.Context, s streams) (err error) {
	wanted, err := c.wanted()
	if err != nil {
		return err
	}
	d, shut, err := c.open(ctx, s.err)
	if err != nil {
		return err
	}
	defer closing(shut, &err)
	if wanted.Partner, err = partnerCalled(ctx, d, c.Partner); err != nil {
		return err
	}
	key, err := d.CreateKey(ctx, wanted)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.out, key)
	return err
}

func (c createKeyCmd) wanted() (db.NewKey, error) {
	wanted := db.NewKey{Name: c.Name}
	for _, scope := range c.Scopes {
		if scope != domain.Read && scope != domain.Write {
			return wanted, fmt.Errorf("scope %q is unknown: use read, write or both", scope)
		}
		if !slices.Contains(wanted.Scopes, scope) {
			wanted.Scopes = append(wanted.Scopes, scope)
		}
	}
	if len(wanted.Scopes) == 0 {
		return wanted, errors.New("--scopes: use read, write or both")
	}
	if c.Clients != "all" {
		wanted.Clients = []domain.ClientID{}
		for text := range strings.SplitSeq(c.Clients, ",") {
			id, err := domain.ParseID[domain.ClientKind](strings.TrimSpace(text))
			if err != nil {
				return wanted, fmt.Errorf("--clients: %q is not the id of a client; use all, or ids as GET /v2/clients shows them", text)
			}
			wanted.Clients = append(wanted.Clients, id)
		}
	}
	networks, err := networks(c.From)
	if err != nil {
		return wanted, fmt.Errorf("--from: %w", err)
	}
	wanted.Networks = networks
	if c.Expires != "" {
		day, err := domain.ParseDate(c.Expires)
		if err != nil {
			return wanted, fmt.Errorf("--expires: %q is not a date such as 2027-01-31", c.Expires)
		}
		if !day.After(domain.DateOf(domain.SystemClock{}.Now())) {
			return wanted, fmt.Errorf("--expires: %s is not after today (UTC): the key would never work", day)
		}
		at := day.Time()
		wanted.ExpiresAt = &at
	}
	return wanted, nil
}

// maxNetworks bounds the networks of a key: each request is held against them.
const maxNetworks = 100

// networks reads networks and addresses.
func networks(texts []string) ([]netip.Prefix, error) {
	if len(texts) > maxNetworks {
		return nil, fmt.Errorf("%d networks are more than %d", len(texts), maxNetworks)
	}
	var list []netip.Prefix
	for _, text := range texts {
		text = strings.TrimSpace(text)
		network, err := netip.ParsePrefix(text)
		if address, single := netip.ParseAddr(text); single == nil && address.Zone() == "" {
			network, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%q is neither an address nor a network such as 10.0.0.0/8", text)
		}
		if network.Addr().Is4In6() {
			return nil, fmt.Errorf("%q: write it as IPv4", text)
		}
		if network = network.Masked(); !slices.Contains(list, network) {
			list = append(list, network)
		}
	}
	return list, nil
}

// partnerCalled finds a partner by name, or the only one.
func partnerCalled(ctx context.Context, d *db.DB, name string) (domain.PartnerID, error) {
	all, err := d.Partners(ctx)
	if err != nil {
		return domain.PartnerID{}, err
	}
	if name == "" {
		if len(all) == 1 {
			return all[0].ID, nil
		}
		return domain.PartnerID{}, fmt.Errorf("there are %d partners: name one with --partner, or create one with the "+
			"command partners create", len(all))
	}
	for _, p := range all {
		if domain.SortKey(p.Name) == domain.SortKey(name) {
			return p.ID, nil
		}
	}
	return domain.PartnerID{}, fmt.Errorf("there is no partner %q: the command partners list shows them", name)
}

type listKeysCmd struct {
	databaseFlags
}

// Run lists the keys.
func (c listKeysCmd) Run(ctx context.Context, s streams) (err error) {
	d, shut, err := c.open(ctx, s.err)
	if err != nil {
		return err
	}
	defer closing(shut, &err)
	keys, err := d.Keys(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(s.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "PREFIX\tNAME\tPARTNER\tCLIENTS\tSCOPES\tFROM\tCREATED\tEXPIRES\tLAST USED\tREVOKED")
	for _, k := range keys {
		clients := "all"
		if !k.AllClients {
			clients = fmt.Sprint(k.Clients)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.Prefix, k.Name, k.Partner, clients,
			strings.Join(k.Scopes, ","), cmp.Or(strings.Join(k.Networks, ","), "-"), k.CreatedAt.Format(time.DateOnly),
			moment(k.ExpiresAt), moment(k.LastUsedAt), moment(k.RevokedAt))
	}
	return w.Flush()
}

// moment is a time for people, and a dash for none.
func moment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04Z")
}

type revokeKeyCmd struct {
	databaseFlags
	Prefix string `arg:"" help:"The key's prefix, as keys list shows it."`
}

// Run ends a key.
func (c revokeKeyCmd) Run(ctx context.Context, s streams) (err error) {
	d, shut, err := c.open(ctx, s.err)
	if err != nil {
		return err
	}
	defer closing(shut, &err)
	if err := d.RevokeKey(ctx, c.Prefix); err != nil {
		if domain.IsCode(err, domain.NotFound) {
			return fmt.Errorf("there is no key with the prefix %q that is not revoked: the command keys list shows them",
				c.Prefix)
		}
		return err
	}
	_, err = fmt.Fprintln(s.out, "revoked", c.Prefix)
	return err
}
