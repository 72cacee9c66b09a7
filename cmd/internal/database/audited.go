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

// Audited runs the work of a command that changes something in one transaction with
// its entry in the audit trail. The work may complete the entry.
func Audited(ctx context.Context, d *db.DB, e *domain.AuditEntry, work func(context.Context) error) error {
	return d.Tx(ctx, func(ctx context.Context) error {
		if err := work(ctx); err != nil {
			return err
		}
		return d.Audit(ctx, ByCommand(*e))
	})
}

// ByCommand is an entry of what a command does: its actor is the user of the
// operating system (decisions 8.16).
func ByCommand(e domain.AuditEntry) domain.AuditEntry {
	e.Prefix = domain.CommandActor
	e.SystemUser = strings.ToValidUTF8(SystemUser(), "?")
	e.SudoUser = strings.ToValidUTF8(os.Getenv("SUDO_USER"), "?")
	return e
}

// SystemUser is the name of the user who runs the command; the number of one who has
// no name, as in a container.
func SystemUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "uid " + strconv.Itoa(os.Getuid())
}

// OfClient is an entry of a command that changes a client.
func OfClient(command string, client domain.ClientID, fields ...string) *domain.AuditEntry {
	return &domain.AuditEntry{
		Operation: command, Client: client, Object: domain.AuditObject{Kind: client.Noun(), ID: client.String()}, Fields: fields,
	}
}

// KeyObject names a key in the audit trail, by its prefix.
func KeyObject(prefix string) domain.AuditObject {
	return domain.AuditObject{Kind: domain.KeyID{}.Noun(), ID: prefix}
}
