package database

import (
	"context"
	"os"
	"os/user"
	"strconv"
	"strings"

	"partnerapi/db"
	"partnerapi/domain"
)

// RunAudited runs work, the change of a command, in one transaction with its audit entry. work may complete the entry.
func RunAudited(ctx context.Context, d *db.DB, e *domain.AuditEntry, work func(context.Context) error) error {
	return d.Tx(ctx, func(ctx context.Context) error {
		if err := work(ctx); err != nil {
			return err
		}
		return d.Audit(ctx, AsCommand(*e))
	})
}

// AsCommand returns the entry with the user of the operating system as its actor (decisions 8.16).
func AsCommand(e domain.AuditEntry) domain.AuditEntry {
	e.Prefix = domain.CommandActor
	e.SystemUser = strings.ToValidUTF8(SystemUser(), "?")
	e.SudoUser = strings.ToValidUTF8(os.Getenv("SUDO_USER"), "?")
	return e
}

// SystemUser returns the name of the user who runs the command, or the user's number if it has no name, as in a container.
func SystemUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "uid " + strconv.Itoa(os.Getuid())
}

// ClientEntry returns the audit entry of a command that changes a client.
func ClientEntry(command string, client domain.ClientID, fields ...string) *domain.AuditEntry {
	return &domain.AuditEntry{
		Operation: command, Client: client, Object: domain.AuditObject{Kind: client.Noun(), ID: client.String()}, Fields: fields,
	}
}

// PartnerEntry returns the audit entry of a command that changes a partner.
func PartnerEntry(command string, partner domain.PartnerID, fields ...string) *domain.AuditEntry {
	object := domain.AuditObject{Kind: partner.Noun(), ID: partner.String()}
	return &domain.AuditEntry{Operation: command, Partner: partner, Object: object, Fields: fields}
}

// KeyObject returns a key as an audit object, by its prefix.
func KeyObject(prefix string) domain.AuditObject {
	return domain.AuditObject{Kind: domain.KeyID{}.Noun(), ID: prefix}
}
