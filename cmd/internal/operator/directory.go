package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/config"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/dirsync"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/platform/directory"
)

// Directory is the command directory, which connects clients to their directories and syncs them.
type Directory struct {
	Connect    connectDirectoryCmd    `cmd:"" help:"Connect a client to its directory, or store new settings or credentials."`
	Disconnect disconnectDirectoryCmd `cmd:"" help:"Disconnect a client from its directory. The client's users remain but are no longer synced." example:"directory disconnect 'Hillside Dental'"`
	List       listDirectoriesCmd     `cmd:"" help:"List clients that have a directory, each with the result of its last sync." example:"directory list"`
	Run        runDirectoryCmd        `cmd:"" help:"Sync a client with its directory now." example:"directory run 'Lakeside Clinic'"`
}

// connectDirectoryCmd is directory connect CLIENT, which is followed by the kind of directory.
type connectDirectoryCmd struct {
	Client connectClientCmd `arg:""`
}

type connectClientCmd struct {
	Client    string              `arg:"" help:"The client's ID, UUID or name."`
	Microsoft connectMicrosoftCmd `cmd:"" help:"Connect to Microsoft Entra ID." example:"directory connect 'Hillside Dental' microsoft --tenant hillside.example --app-id 6a1f4a52-52f0-4a5e-9d6a-0c1c2f9e7b11 --secret-file secret.txt"`
	Google    connectGoogleCmd    `cmd:"" help:"Connect to Google Workspace." example:"directory connect 'Lakeside Clinic' google --credentials-file account.json --admin admin@example.com"`
}

// connectFlags are the flags of commands that connect a client.
type connectFlags struct {
	database.Flags
	config.DirectoryFlags
	database.KeyFlags
}

type connectMicrosoftCmd struct {
	connectFlags
	Tenant     string `required:"" env:"-" help:"The tenant's ID or one of its domains."`
	AppID      string `required:"" name:"app-id" env:"-" help:"The ID of the app registered in the tenant."`
	SecretFile string `required:"" name:"secret-file" env:"-" type:"path" help:"A file with the app's client secret. You can delete the file afterward."`
	Group      string `env:"-" placeholder:"ID" help:"The object ID of a group. Only members of this group and its nested groups are synced."`
}

// Run connects the client of the command line.
func (c connectMicrosoftCmd) Run(ctx context.Context, s cli.Env, to *connectClientCmd) error {
	settings := directory.MicrosoftSettings{
		Tenant: strings.TrimSpace(c.Tenant), AppID: strings.TrimSpace(c.AppID), Group: strings.TrimSpace(c.Group),
	}
	return c.connect(ctx, s, to.Client, domain.Microsoft, settings, c.SecretFile)
}

type connectGoogleCmd struct {
	connectFlags
	CredentialsFile string `required:"" name:"credentials-file" env:"-" type:"path" help:"A file with the JSON key of a service account with domain-wide delegation. You can delete the file afterward."`
	Admin           string `required:"" env:"-" placeholder:"EMAIL" help:"The administrator on whose behalf the service account acts."`
	Domain          string `env:"-" help:"The domain to sync. Default: all domains of the Google Workspace customer."`
}

// Run connects the client of the command line.
func (c connectGoogleCmd) Run(ctx context.Context, s cli.Env, to *connectClientCmd) error {
	settings := directory.GoogleSettings{Admin: strings.TrimSpace(c.Admin), Domain: strings.TrimSpace(c.Domain)}
	return c.connect(ctx, s, to.Client, domain.Google, settings, c.CredentialsFile)
}

// maxCredentials bounds a file of credentials, in bytes.
const maxCredentials = 64 << 10

// connect checks a connection, as far as possible without calling the directory, and stores it. The settings are
// those of the provider, and file has the credentials.
func (f connectFlags) connect(
	ctx context.Context, s cli.Env, client string, provider domain.Directory, providerSettings any, file string,
) error {
	credentials, err := readCredentials(file)
	if err != nil {
		return err
	}
	settings, err := json.Marshal(providerSettings)
	if err != nil {
		return err
	}
	return f.WithClient(ctx, s, client, func(d *db.DB, to db.ClientName) error {
		if _, err := f.Connector(nil /* traces */)(provider, settings, credentials); err != nil { // calls no directory
			return fmt.Errorf("%s: %w", file, err)
		}
		keys, err := f.OpenKeys(ctx, d, f.Flags, output.NewLog(s.Err, slog.LevelWarn, "text"))
		if err != nil {
			return err
		}

		sealed, err := keys.Seal(credentials, directory.SealContext(to.ID))
		if err != nil {
			return err
		}
		entry := database.ClientEntry("directory connect "+string(provider), to.ID, "credentials", "directory", "settings")
		if err := dirsync.Connect(db.WithEntry(ctx, database.AsCommand(*entry)), d, to.ID, provider, settings, sealed); err != nil {
			return plainError(err)
		}
		_, err = fmt.Fprintf(s.Out, "%s (%s) is connected to %s. To sync it now, run: partnerapi directory run %s\n",
			to.Name, to.ID, provider, to.ID)
		return err
	})
}

// readCredentials reads a file of at most maxCredentials. An empty file is an error.
func readCredentials(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxCredentials+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxCredentials:
		return nil, fmt.Errorf("%s is too large for a credentials file", name)
	case strings.TrimSpace(string(text)) == "":
		return nil, fmt.Errorf("%s is empty", name)
	}
	return text, nil
}

// plainError returns an error for operators: of a domain error without a cause only the message; others unchanged.
func plainError(err error) error {
	var known *domain.Error
	if errors.As(err, &known) && known.Cause == nil {
		return errors.New(known.Message)
	}
	return err
}

type disconnectDirectoryCmd struct {
	database.Flags
	Client string `arg:"" help:"The client's ID, UUID or name."`
}

// Run disconnects a client. It may be repeated if it fails.
func (c disconnectDirectoryCmd) Run(ctx context.Context, s cli.Env) error {
	return c.WithClient(ctx, s, c.Client, func(d *db.DB, from db.ClientName) error {
		entry := database.ClientEntry("directory disconnect", from.ID, "directory")
		err := dirsync.Disconnect(db.WithEntry(ctx, database.AsCommand(*entry)), d, from.ID)
		if domain.IsCode(err, domain.NotFound) {
			return fmt.Errorf("%s (%s) has no directory", from.Name, from.ID)
		}
		if err != nil {
			return fmt.Errorf("%w\nrun the command again to continue", err)
		}
		_, err = fmt.Fprintf(s.Out, "%s (%s) is disconnected; its users are now managed manually\n", from.Name, from.ID)
		return err
	})
}

type listDirectoriesCmd struct {
	database.Flags
	JSON bool `name:"json" env:"-" help:"Print the connections as a JSON array."`
}

// directoryLine is a connection as the command prints it in JSON.
type directoryLine struct {
	ClientID  domain.ClientID    `json:"client_id"`
	Client    string             `json:"client"`
	Partner   string             `json:"partner"`
	Directory domain.Directory   `json:"directory"`
	Settings  json.RawMessage    `json:"settings"`
	SyncedAt  *domain.Time       `json:"synced_at"`
	NextAt    domain.Time        `json:"next_at"`
	LastRun   *domain.SyncStatus `json:"last_run"`
	Error     *string            `json:"error"`
	// WithoutEmail is that of the last completed run; null if there is none.
	WithoutEmail *int `json:"without_email"`
}

// row returns the cells of the table.
func (k directoryLine) row() []any {
	synced := "never"
	if k.SyncedAt != nil {
		synced = k.SyncedAt.Time.Format(time.RFC3339)
	}
	return []any{
		k.ClientID, k.Client, k.Partner, k.Directory, string(k.Settings), synced, k.NextAt.Time.Format(time.RFC3339),
		cmp.Or(string(domain.OrZero(k.LastRun)), "none"), domain.OrZero(k.WithoutEmail), domain.OrZero(k.Error),
	}
}

// Run lists the connections.
func (c listDirectoriesCmd) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) error {
		list, err := dirsync.Connections(ctx, d)
		if err != nil {
			return err
		}
		lines := pg.MapRows(list, func(k *dirsync.Connection) directoryLine {
			return directoryLine{
				k.Client, k.Name, k.Partner, k.Provider, json.RawMessage(k.Settings), domain.MaybeAt(k.SyncedAt), domain.At(k.NextAt), k.Last, k.Error,
				k.WithoutEmail,
			}
		})
		columns := []any{"CLIENT", "NAME", "PARTNER", "DIRECTORY", "SETTINGS", "SYNCED", "NEXT", "LAST RUN", "WITHOUT EMAIL", "ERROR"}
		return output.List(s.Out, c.JSON, lines, columns, directoryLine.row)
	})
}

type runDirectoryCmd struct {
	database.Flags
	config.DirectoryFlags
	database.KeyFlags
	Client string `arg:"" help:"The client's ID, UUID or name."`
	Force  bool   `env:"-" help:"Allow the run to deactivate any number of users. Without this flag, a run changes nothing if it would deactivate all users from the directory (two or more), or more than 5 users and more than 20% of the directory's users."`
}

func (runDirectoryCmd) Help() string {
	return "If the run is interrupted, the service completes it. The exit status is 0 if the run is complete. The output " +
		"counts users. In addition, without_email counts the directory's accounts that have no email address and therefore no " +
		"user. For Google, these include accounts without a mailbox."
}

// Run syncs a client and prints the outcome, in place of the runner's log.
func (c runDirectoryCmd) Run(ctx context.Context, s cli.Env) error {
	return c.WithClient(ctx, s, c.Client, func(d *db.DB, of db.ClientName) error {
		log := output.NewLog(s.Err, slog.LevelWarn, "text")
		keys, err := c.OpenKeys(ctx, d, c.Flags, log)
		if err != nil {
			return err
		}
		runner := directory.NewRunner(d, keys, c.Connector(nil), slog.New(slog.DiscardHandler), directory.Observer{})
		entry := database.AsCommand(*database.ClientEntry("directory run", of.ID))
		run, err := runner.Start(db.WithEntry(ctx, entry), of.ID, c.Force, func(read, applied int) {
			fmt.Fprintf(s.Err, "%d accounts read, %d applied\n", read, applied)
		})
		if err != nil {
			return plainError(err)
		}
		for _, skipped := range run.Skipped {
			fmt.Fprintf(s.Err, "skipped %s: %s\n", domain.Visible(skipped.Address), domain.Visible(skipped.Reason))
		}
		if run.Error != nil {
			return fmt.Errorf("the run failed: %s", domain.Visible(*run.Error))
		}
		_, err = fmt.Fprintf(s.Out, "%d created, %d updated, %d deactivated, %d merged, %d unchanged, %d without_email\n",
			run.Created, run.Updated, run.Deactivated, run.Merged, run.Unchanged, run.WithoutEmail)
		return err
	})
}
