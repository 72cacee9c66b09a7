// Package operator has the commands by which an operator works on the database: for partners and keys, the audit trail,
// email, webhooks, directories and catalogues, and to import, export, move and migrate its contents.
package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Keys is the command keys, which creates, lists, rotates and revokes API keys.
type Keys struct {
	Create createKeyCmd  `cmd:"" help:"Create a key and print only the key. The key cannot be shown again." example:"keys create --partner 'Northlight MSP' --name 'PSA sync' --clients all --scopes read,write\nkeys create --partner 'Northlight MSP' --name Report --clients 'Hillside Dental' --scopes read --expires 2028-01-31"`
	List   listKeysCmd   `cmd:"" help:"List the keys, without their secrets." example:"keys list"`
	Rotate rotateTextCmd `cmd:"" help:"Create a new secret for a key and print only the secret. The old secret stays valid for 7 days by default." example:"keys rotate pk_1cY4nTq8Zb --old-until 7d\nkeys rotate pk_1cY4nTq8Zb --end-old"`
	Revoke revokeKeyCmd  `cmd:"" help:"Revoke a key. Running services reject it within 30 seconds." example:"keys revoke pk_1cY4nTq8Zb"`
}

type createKeyCmd struct {
	database.Flags
	Name    string         `required:"" env:"-" help:"A name that says what the key is for."`
	Partner string         `env:"-" help:"The partner's ID, UUID or name. You can omit this flag if there is only one partner."`
	Clients string         `required:"" env:"-" placeholder:"all|CLIENT,…" help:"The clients that the key can access: their IDs, UUIDs or names. For an archived client, or one with a comma in its name, use the ID."`
	Scopes  []domain.Scope `required:"" env:"-" placeholder:"read,write" help:"The key's permissions: read, write or both."`
	From    []string       `env:"-" placeholder:"CIDR,…" help:"Up to 100 networks or IP addresses from which the key can be used. Default: all."`
	Expires domain.Date    `env:"-" placeholder:"DATE" help:"The first day (UTC) on which the key no longer works, such as 2027-01-31."`
	V1      bool           `name:"v1" env:"-" help:"Allow the key to use v1 even if new keys cannot (v1 phase --new off)."` // v1-line
	JSON    bool           `name:"json" env:"-" help:"Print the key, its prefix and its settings as JSON."`
}

// Validate rejects an invalid name, scope or network, and an end that has passed.
func (c createKeyCmd) Validate() error {
	if err := checkName("--name", c.Name); err != nil {
		return err
	}
	_, err := c.newKey()
	return err
}

// Run creates a key and prints it.
func (c createKeyCmd) Run(ctx context.Context, s cli.Env) error {
	settings, err := c.newKey()
	if err != nil {
		return err
	}
	return c.With(ctx, s, func(d *db.DB) error {
		if settings.Partner, err = database.FindPartner(ctx, d, c.Partner); err != nil {
			return err
		}
		if settings.Clients, err = c.parseClients(ctx, d, settings.Partner); err != nil {
			return fmt.Errorf("--clients: %w", err)
		}
		key := ""
		entry := &domain.AuditEntry{Operation: "keys create", Partner: settings.Partner, Fields: keyFields(settings)}
		err = database.RunAudited(ctx, d, entry, func(ctx context.Context) error {
			key, err = d.CreateKey(ctx, settings)
			entry.Object = database.KeyObject(domain.APIKeyPrefix(key))
			err = c.allowV1(ctx, d, key, err) // v1-line
			return err
		})
		if err != nil {
			return err
		}
		if c.JSON {
			return output.JSON(s.Out, createdKey{
				key, domain.APIKeyPrefix(key), settings.Name, settings.Partner, settings.Scopes,
				domain.MaybeAt(settings.ExpiresAt),
			})
		}
		_, err = fmt.Fprintln(s.Out, key)
		return err
	})
}

// createdKey is a new key as the command prints it in JSON.
type createdKey struct {
	Key       string           `json:"key"`
	Prefix    string           `json:"prefix"`
	Name      string           `json:"name"`
	PartnerID domain.PartnerID `json:"partner_id"`
	Scopes    []domain.Scope   `json:"scopes"`
	ExpiresAt *domain.Time     `json:"expires_at"`
}

// keyFields returns the names of the settings that a new key has, sorted, for its audit entry.
func keyFields(k db.NewKey) []string {
	fields := []string{"clients"}
	if k.ExpiresAt != nil {
		fields = append(fields, "expires_at")
	}
	fields = append(fields, "name")
	if len(k.Networks) > 0 {
		fields = append(fields, "networks")
	}
	return append(fields, "scopes")
}

// newKey returns the settings of the key to create, without its partner and clients. Invalid flags are an error.
func (c createKeyCmd) newKey() (db.NewKey, error) {
	settings := db.NewKey{Name: c.Name}
	for _, scope := range c.Scopes {
		if scope != domain.Read && scope != domain.Write {
			return settings, fmt.Errorf("scope %q is unknown; use read, write or both", scope)
		}
		if !slices.Contains(settings.Scopes, scope) {
			settings.Scopes = append(settings.Scopes, scope)
		}
	}
	if len(settings.Scopes) == 0 {
		return settings, errors.New("--scopes: use read, write or both")
	}
	blank := func(text string) bool { return strings.TrimSpace(text) == "" }
	if slices.ContainsFunc(strings.Split(c.Clients, ","), blank) {
		return settings, errors.New("--clients: use all or the clients' IDs, UUIDs or names, separated by commas")
	}
	networks, err := parseNetworks(c.From)
	if err != nil {
		return settings, fmt.Errorf("--from: %w", err)
	}
	settings.Networks = networks
	if !c.Expires.IsZero() {
		if !c.Expires.After(domain.DateOf(domain.SystemClock{}.Now())) {
			return settings, fmt.Errorf("--expires: %s is not after today (UTC), so the key would never work", c.Expires)
		}
		settings.ExpiresAt = new(c.Expires.Time())
	}
	return settings, nil
}

// parseClients returns the clients of the partner that the flag limits the key to; nil for all. It looks up a name, but
// no id.
func (c createKeyCmd) parseClients(ctx context.Context, d *db.DB, partner domain.PartnerID) ([]domain.ClientID, error) {
	if c.Clients == "all" {
		return nil, nil
	}
	list := []domain.ClientID{}
	for text := range strings.SplitSeq(c.Clients, ",") {
		id, err := database.ParseClientID(strings.TrimSpace(text)) // also of a client that is archived
		if err != nil {
			named, err := database.FindClient(ctx, d, partner, strings.TrimSpace(text))
			if err != nil {
				return nil, err
			}
			id = named.ID
		}
		list = append(list, id)
	}
	return list, nil
}

// maxNetworks bounds the networks of a key, as each request is matched against them.
const maxNetworks = 100

// parseNetworks parses networks, and addresses as networks of one address. It drops repeated ones. More than
// maxNetworks are an error, as are zones and IPv4 addresses in IPv6.
func parseNetworks(texts []string) ([]netip.Prefix, error) {
	if len(texts) > maxNetworks {
		return nil, fmt.Errorf("too many networks: %d; the maximum is %d", len(texts), maxNetworks)
	}
	var list []netip.Prefix
	for _, text := range texts {
		text = strings.TrimSpace(text)
		network, err := netip.ParsePrefix(text)
		if address, addressErr := netip.ParseAddr(text); addressErr == nil && address.Zone() == "" {
			network, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%q is neither an IP address nor a network such as 10.0.0.0/8", text)
		}
		if network.Addr().Is4In6() {
			return nil, fmt.Errorf("%q must be written as IPv4", text)
		}
		if network = network.Masked(); !slices.Contains(list, network) {
			list = append(list, network)
		}
	}
	return list, nil
}

type listKeysCmd struct {
	database.Flags
	JSON bool `name:"json" env:"-" help:"Print the keys as a JSON array."`
}

// keyLine is a key as the command prints it in JSON.
type keyLine struct {
	Prefix     string       `json:"prefix"`
	Name       string       `json:"name"`
	Partner    string       `json:"partner"`
	AllClients bool         `json:"all_clients"`
	Clients    int          `json:"clients"` // the number to which it is limited; 0 for all
	Scopes     []string     `json:"scopes"`
	Networks   []string     `json:"networks"`
	CreatedAt  domain.Time  `json:"created_at"`
	ExpiresAt  *domain.Time `json:"expires_at"`
	LastUsedAt *domain.Time `json:"last_used_at"`
	RevokedAt  *domain.Time `json:"revoked_at"`
	OldPrefix  *string      `json:"old_prefix"` // of the text that was replaced and is still valid
	OldUntil   *domain.Time `json:"old_until"`
}

// row returns the cells of the table.
func (k keyLine) row() []any {
	clients := any("all")
	if !k.AllClients {
		clients = k.Clients
	}
	old := "-"
	if k.OldPrefix != nil {
		old = *k.OldPrefix + " until " + output.ShortTime(k.OldUntil)
	}
	return []any{
		k.Prefix, k.Name, k.Partner, clients, strings.Join(k.Scopes, ","), cmp.Or(strings.Join(k.Networks, ","), "-"),
		k.CreatedAt.Time.Format(time.DateOnly), output.ShortTime(k.ExpiresAt), output.ShortTime(k.LastUsedAt), output.ShortTime(k.RevokedAt), old,
	}
}

// Run lists the keys.
func (c listKeysCmd) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) error {
		keys, err := d.Keys(ctx)
		if err != nil {
			return err
		}
		lines := pg.MapRows(keys, func(k *db.Key) keyLine {
			return keyLine{
				k.Prefix, k.Name, k.Partner, k.AllClients, k.Clients, append([]string{}, k.Scopes...), append([]string{}, k.Networks...),
				domain.At(k.CreatedAt), domain.MaybeAt(k.ExpiresAt), domain.MaybeAt(k.LastUsedAt), domain.MaybeAt(k.RevokedAt),
				k.OldPrefix, domain.MaybeAt(k.OldUntil),
			}
		})
		columns := []any{"PREFIX", "NAME", "PARTNER", "CLIENTS", "SCOPES", "FROM", "CREATED", "EXPIRES", "LAST USED", "REVOKED", "OLD SECRET"}
		return output.List(s.Out, c.JSON, lines, columns, keyLine.row)
	})
}

type revokeKeyCmd struct {
	database.Flags
	Prefix string `arg:"" help:"The key's prefix, as shown by keys list, or the prefix of an earlier secret."`
}

// Run revokes a key, and names the webhooks that end with it.
func (c revokeKeyCmd) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) (err error) {
		entry := &domain.AuditEntry{Operation: "keys revoke", Fields: []string{"revoked_at"}}
		var hooks []domain.Webhook
		err = database.RunAudited(ctx, d, entry, func(ctx context.Context) error {
			k, err := d.RevokeKey(ctx, c.Prefix)
			if err != nil {
				return err
			}
			entry.Partner, entry.Object = k.Partner, database.KeyObject(k.Prefix)
			hooks, err = outbox.EndingWebhooks(ctx, d, k.ID)
			return err
		})
		if err != nil {
			return explainNoKey(err, c.Prefix)
		}
		fmt.Fprintln(s.Out, "revoked", c.Prefix)
		for _, h := range hooks {
			fmt.Fprintf(s.Out, "webhook %s (%s) uses this key and will be disabled within a minute. To keep the webhook, PATCH it with "+
				"{\"status\": \"active\"}, using another key that has at least the same access.\n", h.ID, domain.Visible(h.URL))
		}
		return nil
	})
}

// explainNoKey returns an error for operators if err is NotFound, the error of a missing or revoked key; otherwise err.
func explainNoKey(err error, prefix string) error {
	if domain.IsCode(err, domain.NotFound) {
		return fmt.Errorf("there is no active key with the prefix %q; keys list shows all keys", prefix)
	}
	return err
}

type rotateTextCmd struct {
	database.Flags
	Prefix   string      `arg:"" help:"The key's prefix, as shown by keys list, or the prefix of an earlier secret."`
	OldUntil *span       `name:"old-until" env:"-" placeholder:"7d" help:"Remaining lifetime of the current secret: at most 365d, or until the key expires if that is earlier. 0s ends the secret now. Default: 7d."`
	Expires  domain.Date `env:"-" placeholder:"DATE" help:"New expiry date: the first day (UTC) on which the key no longer works. Default: unchanged."`
	EndOld   bool        `name:"end-old" env:"-" help:"End the old secret now, without creating a new one."`
	JSON     bool        `name:"json" env:"-" help:"Print the new secret and its prefix, and the old secret's prefix and end time, as JSON."`
}

// Help says what continues.
func (rotateTextCmd) Help() string {
	return "The key keeps its webhooks, scopes, clients, networks and budgets. " +
		"The key also keeps its v1 phase and usage. " + // v1-line
		"A key has at most two valid secrets, so another rotation ends the oldest secret. Running services reject an ended secret " +
		"within 30 seconds. Commands accept the prefix of either secret. " +
		"keys revoke ends the key and all its secrets. Rotate only after all processes of the service run this version, " +
		"because earlier versions accept only the newest secret."
}

// A replaced text stays valid for oldFor, unless a flag says otherwise, and at most for maxOldFor.
const (
	oldFor    = 7 * 24 * time.Hour
	maxOldFor = 365 * 24 * time.Hour
)

// oldFor returns how long the present text stays valid.
func (c rotateTextCmd) oldFor() time.Duration {
	if c.OldUntil == nil {
		return oldFor
	}
	return c.OldUntil.Duration
}

// Validate rejects flags that do not fit together, and times out of range.
func (c rotateTextCmd) Validate() error {
	switch {
	case c.EndOld && (!c.Expires.IsZero() || c.JSON):
		return errors.New("--end-old creates no new secret; omit --expires and --json")
	case c.EndOld && c.OldUntil != nil:
		return errors.New("--end-old ends the old secret now; omit --old-until")
	case c.oldFor() > maxOldFor:
		return errors.New("--old-until must be at most 365d")
	case !c.Expires.IsZero() && !c.Expires.After(domain.DateOf(domain.SystemClock{}.Now())):
		return fmt.Errorf("--expires: %s is not after today (UTC), so the key would never work", c.Expires)
	}
	return nil
}

// rotatedKey is a rotated key as the command prints it in JSON.
type rotatedKey struct {
	Key       string       `json:"key"`
	Prefix    string       `json:"prefix"`
	OldPrefix string       `json:"old_prefix"`
	OldUntil  domain.Time  `json:"old_until"`
	ExpiresAt *domain.Time `json:"expires_at"`
}

// Run rotates a key and prints its new text, or ends its replaced text.
func (c rotateTextCmd) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) error {
		if c.EndOld {
			return c.endOld(ctx, s, d)
		}
		rotation := db.Rotation{OldFor: c.oldFor()}
		entry := &domain.AuditEntry{Operation: "keys rotate", Fields: []string{"text"}}
		if !c.Expires.IsZero() {
			rotation.ExpiresAt, entry.Fields = new(c.Expires.Time()), []string{"expires_at", "text"}
		}
		var k db.RotatedKey
		err := database.RunAudited(ctx, d, entry, func(ctx context.Context) (err error) {
			k, err = d.RotateKey(ctx, c.Prefix, rotation)
			entry.Partner, entry.Object = k.Partner, database.KeyObject(k.Prefix)
			return err
		})
		if err != nil {
			return explainNoKey(err, c.Prefix)
		}
		if k.Ended != "" {
			fmt.Fprintf(s.Err, "ended the secret %s of this key, which was still valid; running services reject it within 30 seconds\n", k.Ended)
		}
		if c.JSON {
			return output.JSON(s.Out, rotatedKey{k.Text, k.Prefix, k.OldPrefix, domain.At(k.OldUntil), domain.MaybeAt(k.ExpiresAt)})
		}
		_, err = fmt.Fprintln(s.Out, k.Text)
		return err
	})
}

// endOld ends the replaced text of the key.
func (c rotateTextCmd) endOld(ctx context.Context, s cli.Env, d *db.DB) error {
	entry, ended := &domain.AuditEntry{Operation: "keys rotate", Fields: []string{"old_text"}}, ""
	err := database.RunAudited(ctx, d, entry, func(ctx context.Context) (err error) {
		var k db.FoundKey
		if k, ended, err = d.EndOldText(ctx, c.Prefix); err == nil && ended == "" {
			err = fmt.Errorf("the key %s has no old secret that is still valid", c.Prefix)
		}
		entry.Partner, entry.Object = k.Partner, database.KeyObject(k.Prefix)
		return err
	})
	if err != nil {
		return explainNoKey(err, c.Prefix)
	}
	_, err = fmt.Fprintf(s.Out, "ended the secret %s; running services reject it within 30 seconds\n", ended)
	return err
}
