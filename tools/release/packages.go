package main

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // a format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // the other one
)

// scripts are run by dpkg and rpm.
//
//go:embed package
var scripts embed.FS

const (
	summary    = "Partner API of a security awareness training service"
	maintainer = "The maintainers of partnerapi <maintainers@partnerapi.example>"
)

// packaged is a file or folder of a package.
type packaged struct {
	entry
	kind  string // as nfpm names it
	owner string // "user:group"; root's if it is empty
}

// writePackage writes the package of a target, in a format of nfpm.
func (r *release) writePackage(w io.Writer, format string, t target) error {
	folder, err := os.MkdirTemp("", "partnerapi-package")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	info, err := r.packageInfo(folder, format, t)
	if err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	info = nfpm.WithDefaults(info)
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	return packager.Package(info, w)
}

// packageInfo describes the package. The folder takes the files, which nfpm reads from a disk.
func (r *release) packageInfo(folder, format string, t target) (*nfpm.Info, error) {
	users := map[string]string{"deb": "passwd", "rpm": "shadow-utils"} // has useradd
	info := &nfpm.Info{
		Name: "partnerapi", Version: r.version, Platform: t.os, Arch: t.arch, MTime: r.time, License: "Apache-2.0", Section: "net",
		Priority: "optional", Maintainer: maintainer,
		Description: summary + "\nManaged service providers manage the clients, users, training and\n" +
			"simulated phishing of the service by it. It needs PostgreSQL 14 or later.",
		DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Recommends: []string{"ca-certificates"}, Suggests: []string{"postgresql"},
			Deb: nfpm.Deb{Predepends: []string{users["deb"]}},
			RPM: nfpm.RPM{BuildHost: "release", Summary: summary},
		},
	}
	if format == "rpm" {
		info.Depends = []string{users["rpm"]}
	}
	all, err := r.packageFiles(format, t)
	if err != nil {
		return nil, err
	}
	for i, f := range all {
		content, err := f.content(filepath.Join(folder, fmt.Sprint(i)))
		if err != nil {
			return nil, err
		}
		content.FileInfo.MTime = r.time
		info.Contents = append(info.Contents, content)
	}
	for name, at := range map[string]*string{"preinstall": &info.Scripts.PreInstall, "postinstall": &info.Scripts.PostInstall,
		"preremove": &info.Scripts.PreRemove, "postremove": &info.Scripts.PostRemove} {
		script, err := scripts.ReadFile("package/" + name + ".sh")
		if err != nil {
			return nil, err
		}
		*at = filepath.Join(folder, name)
		if err := os.WriteFile(*at, script, 0o755); err != nil {
			return nil, err
		}
	}
	return info, nil
}

// content writes the data to a file, and describes it to nfpm.
func (f packaged) content(file string) (*files.Content, error) {
	user, group, ok := strings.Cut(f.owner, ":")
	if !ok {
		user, group = "root", "root"
	}
	c := &files.Content{Destination: "/" + f.name, Type: f.kind,
		FileInfo: &files.ContentFileInfo{Owner: user, Group: group, Mode: f.mode.Perm()}}
	if f.mode.IsDir() {
		return c, nil
	}
	c.Source = file
	return c, os.WriteFile(file, f.data, 0o600)
}

// packageFiles returns what a package has.
func (r *release) packageFiles(format string, t target) ([]packaged, error) {
	settings, err := r.read("deploy/partnerapi.env")
	if err != nil {
		return nil, err
	}
	all := []packaged{
		{entry: entry{name: "usr/bin/partnerapi", mode: 0o755, data: r.binaries[t]}},
		{entry: entry{name: "etc/partnerapi", mode: fs.ModeDir | 0o750}, kind: files.TypeDir, owner: "root:partnerapi"},
		r.packagedSettings(format, settings),
		{entry: entry{name: "var/lib/partnerapi", mode: fs.ModeDir | 0o700}, kind: files.TypeDir, owner: "partnerapi:partnerapi"},
	}
	for _, name := range []string{"partnerapi.service", "partnerapi-work.service"} {
		unit, err := r.packagedUnit("deploy/" + name)
		if err != nil {
			return nil, err
		}
		all = append(all, packaged{entry: entry{name: "usr/lib/systemd/system/" + name, mode: 0o644, data: unit}})
	}
	zsh := map[string]string{"deb": "vendor-completions", "rpm": "site-functions"}[format]
	more, err := r.completions("usr/share/bash-completion/completions/partnerapi", "usr/share/zsh/"+zsh+"/_partnerapi",
		"usr/share/fish/vendor_completions.d/partnerapi.fish")
	if err != nil {
		return nil, err
	}
	manual, err := r.manual()
	if err != nil {
		return nil, err
	}
	more = append(more, entry{name: "usr/share/man/man1/partnerapi.1.gz", mode: 0o644, data: manual})
	documents, err := r.documents()
	if format == "deb" {
		ofDebian, err := r.debianFiles()
		if err != nil {
			return nil, err
		}
		more = append(more, ofDebian...)
	}
	for _, d := range documents {
		if d.name == "LICENSE" && format == "deb" {
			continue // its copyright names the copy that Debian has
		}
		d.name = "usr/share/doc/partnerapi/" + d.name
		more = append(more, d)
	}
	for _, e := range more {
		all = append(all, packaged{entry: e})
	}
	return all, err
}

// packagedSettings returns the settings as a package has them: for rpm where the services read them, otherwise as a
// template, which postinstall.sh copies once. As a conffile of dpkg, every change of the template would stop an
// unattended upgrade, which cannot answer dpkg's question: every installation has changed its settings.
func (r *release) packagedSettings(format string, settings []byte) packaged {
	if format == "rpm" || r.conffile {
		return packaged{entry: entry{name: "etc/partnerapi/partnerapi.env", mode: 0o640, data: settings},
			kind: files.TypeConfigNoReplace, owner: "root:partnerapi"}
	}
	return packaged{entry: entry{name: "usr/share/partnerapi/partnerapi.env", mode: 0o644, data: settings}}
}

// packagedUnit returns a unit as a package has it: with the program's place, and with the user that the package makes.
// A dynamic user's data would be below /var/lib/private, which commands that are run manually cannot access.
func (r *release) packagedUnit(name string) ([]byte, error) {
	unit, err := r.read(name)
	if err != nil {
		return nil, err
	}
	text := string(unit)
	for _, change := range []struct{ from, to string }{{"=/usr/local/bin/partnerapi ", "=/usr/bin/partnerapi "}, {"\nDynamicUser=yes\n", "\n"}} {
		if strings.Count(text, change.from) != 1 {
			return nil, fmt.Errorf("%s has %q not once", name, change.from)
		}
		text = strings.Replace(text, change.from, change.to, 1)
	}
	return []byte(text), nil
}
