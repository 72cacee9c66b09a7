package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const (
	root    = "../.."
	version = "v0.0.1-rc.1"
	prefix  = "partnerapi_0.0.1-rc.1_"
)

// here is the target of this machine.
var here = target{runtime.GOOS, runtime.GOARCH}

// release0 is a release of the sources for this machine, made once.
var release0 = sync.OnceValues(func() (*release, error) {
	out, err := os.MkdirTemp("", "partnerapi-dist")
	if err != nil {
		return nil, err
	}
	return makeRelease(root, out)
})

func makeRelease(root, out string) (*release, error) {
	r := &release{version: version, targets: []target{here}, out: out, progress: os.Stderr, binaries: map[target][]byte{}}
	if err := r.prepare(context.Background(), root, true); err != nil {
		return nil, err
	}
	return r, r.make(context.Background())
}

func TestMain(m *testing.M) {
	code := m.Run()
	if r, _ := release0(); r != nil {
		_ = os.RemoveAll(r.out)
	}
	os.Exit(code)
}

func made(t *testing.T) *release {
	t.Helper()
	r, err := release0()
	check(t, err)
	return r
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestSameBytes makes the release from a copy of the sources in another folder, and wants the same bytes.
func TestSameBytes(t *testing.T) {
	r := made(t)
	copied := filepath.Join(t.TempDir(), "a copy")
	_, err := output(exec.Command("git", "clone", "--quiet", "--shared", "--no-checkout", root, copied))
	check(t, err)
	for _, name := range r.files { // with what is not committed
		data, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		check(t, err)
		about, err := os.Stat(filepath.Join(root, name))
		check(t, err)
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(copied, name)), 0o755))
		check(t, os.WriteFile(filepath.Join(copied, name), data, about.Mode()))
	}
	_, err = output(exec.Command("git", "-C", copied, "reset", "--quiet"))
	check(t, err)

	other, err := makeRelease(copied, t.TempDir())
	check(t, err)
	files, err := os.ReadDir(r.out)
	check(t, err)
	if len(files) < 4 {
		t.Errorf("%d files were made", len(files))
	}
	for _, f := range files {
		one, err := os.ReadFile(filepath.Join(r.out, f.Name()))
		check(t, err)
		two, err := os.ReadFile(filepath.Join(other.out, f.Name()))
		check(t, err)
		if !bytes.Equal(one, two) {
			t.Errorf("%s of %s has %x, of %s %x", f.Name(), root, sha256.Sum256(one), copied, sha256.Sum256(two))
		}
	}
}

// TestRefusals wants no release of a version, sources or a folder that are none.
func TestRefusals(t *testing.T) {
	full := t.TempDir()
	check(t, os.WriteFile(filepath.Join(full, "file"), nil, 0o600))
	for want, args := range map[string][]string{
		"VERSION":           {"-version", "1.0.0"},
		`it is "v1.0"`:      {"-version", "v1.0"},
		`it is ""`:          {},
		"has files already": {"-version", version, "-dirty", "-out", full},
		"made of a commit":  {"-version", version, "-source", full},
		"targets are":       {"-version", version, "-targets", "plan9/amd64"},
		"no flag":           {"v1.0.0"},
	} {
		if err := run(t.Context(), append([]string{"-source", root}, args...), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}

	dirty := t.TempDir()
	for _, args := range [][]string{{"init", "--quiet"}, {"-c", "user.name=a", "-c", "user.email=a@a.example", "commit", "--quiet", "--allow-empty", "-m", "a"}} {
		_, err := output(exec.Command("git", append([]string{"-C", dirty}, args...)...))
		check(t, err)
	}
	check(t, os.WriteFile(filepath.Join(dirty, "file"), nil, 0o600))
	err := run(t.Context(), []string{"-version", version, "-source", dirty, "-out", t.TempDir()}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "not committed") {
		t.Error(err)
	}
}

// TestLicenses wants a module without a licence, or with another one than those that fit, to be refused.
func TestLicenses(t *testing.T) {
	r := made(t)
	check(t, assess(r.parts))
	gpl := []byte("This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public " +
		"License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.")
	for want, licenses := range map[string][]text{
		"no licence": {{"NOTICE", []byte("of somebody")}},
		"GPL-3":      {{"LICENSE", gpl}},
		"0 % of":     {{"COPYING", []byte("You may not give this to others.")}},
	} {
		if err := assess([]part{{name: "example.com/x", licenses: licenses}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for _, name := range []string{"std", "minisearch", "github.com/gin-gonic/gin"} {
		if !slices.ContainsFunc(r.parts, func(p part) bool { return p.name == name && len(p.licenses) > 0 }) {
			t.Errorf("%s is no part with a licence", name)
		}
	}
}

// TestSBOM wants the list of parts to be whole: each is named once, and what it needs is there.
func TestSBOM(t *testing.T) {
	r := made(t)
	file, err := os.Open(filepath.Join(r.out, prefix+"sbom.cdx.json"))
	check(t, err)
	defer file.Close()
	var bom cdx.BOM
	check(t, cdx.NewBOMDecoder(file, cdx.BOMFileFormatJSON).Decode(&bom))
	known := map[string]bool{bom.Metadata.Component.BOMRef: true}
	for _, c := range *bom.Components {
		if known[c.BOMRef] || c.Version == "" || c.Licenses == nil {
			t.Errorf("%+v", c)
		}
		known[c.BOMRef] = true
	}
	if len(known) != len(r.parts)+1 {
		t.Errorf("%d parts are %d components", len(r.parts), len(known))
	}
	reached := map[string]bool{bom.Metadata.Component.BOMRef: true}
	for _, d := range *bom.Dependencies {
		if d.Dependencies == nil {
			continue
		}
		for _, ref := range *d.Dependencies {
			reached[ref] = true
			if !known[ref] {
				t.Errorf("%s needs %s, which is no component", d.Ref, ref)
			}
		}
	}
	for ref := range known {
		if !reached[ref] {
			t.Errorf("nothing needs %s", ref)
		}
	}
}

// TestSums wants the checksums to be those of all files.
func TestSums(t *testing.T) {
	r := made(t)
	sums, err := os.ReadFile(filepath.Join(r.out, "SHA256SUMS"))
	check(t, err)
	files, err := os.ReadDir(r.out)
	check(t, err)
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(r.out, f.Name()))
		check(t, err)
		if line := fmt.Sprintf("%x  %s\n", sha256.Sum256(data), f.Name()); f.Name() != "SHA256SUMS" && !bytes.Contains(sums, []byte(line)) {
			t.Errorf("no line %s", line)
		}
	}
}

// TestArchive unpacks the archive into an empty folder, and runs the program to a first request.
func TestArchive(t *testing.T) {
	r := made(t)
	folder := t.TempDir()
	name := prefix + here.os + "_" + here.arch
	file, err := os.Open(filepath.Join(r.out, name+".tar.gz"))
	check(t, err)
	defer file.Close()
	zipped, err := gzip.NewReader(file)
	check(t, err)
	unpack(t, zipped, folder)
	for _, name := range []string{"README.md", "LICENSE", licensesFile, "deploy/partnerapi.service", "docs/operating.md",
		"completions/partnerapi.bash", "completions/_partnerapi", "completions/partnerapi.fish"} {
		if _, err := os.Stat(filepath.Join(folder, prefix+here.os+"_"+here.arch, name)); err != nil {
			t.Error(err)
		}
	}
	checkReadme(t, filepath.Join(folder, name))
	p := process{program: "./partnerapi", folder: filepath.Join(folder, name), env: usual(t)}
	if said := p.run(t, "version"); !strings.HasPrefix(said, "partnerapi "+version+"\ncommit: "+r.commit) {
		t.Errorf("the program says it is %s", said)
	}
	if script := p.run(t, "completion", "zsh"); script != string(fileOf(t, filepath.Join(folder, name, "completions/_partnerapi"))) {
		t.Error("the completion of zsh is another one")
	}
	s := p.start(t, "serve", "--demo", "--listen=127.0.0.1:0", "--release=latest")
	s.asked(t, "pk_demo_all", `"data":[{"id":"cli_`)
	s.stop(t)
}

// checkReadme verifies that the README of an unpacked archive names files that the archive has, and no target of make.
func checkReadme(t *testing.T, folder string) {
	t.Helper()
	text := string(fileOf(t, filepath.Join(folder, "README.md")))
	links := regexp.MustCompile(`\]\(([^)#]+)`).FindAllStringSubmatch(text, -1)
	for _, link := range links {
		if _, err := os.Stat(filepath.Join(folder, link[1])); err != nil {
			t.Errorf("README.md: %v", err)
		}
	}
	if made := regexp.MustCompile(`\bmake [a-z-]+|bin/partnerapi`).FindString(strings.ReplaceAll(text, "reports make", "")); made != "" || len(links) < 8 {
		t.Errorf("README.md names %q, and has %d links", made, len(links))
	}
}

func fileOf(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	check(t, err)
	return data
}

// unpack unpacks a tar file into a folder, and wants it to have nothing of the machine that it was made on.
func unpack(t *testing.T, from io.Reader, folder string) {
	t.Helper()
	r := made(t)
	for files := tar.NewReader(from); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		check(t, err)
		if h.Uname != "" || h.Gname != "" || !h.ModTime.Equal(r.time) || !filepath.IsLocal(h.Name) {
			t.Errorf("%+v", h)
		}
		at := filepath.Join(folder, h.Name)
		if h.FileInfo().IsDir() {
			check(t, os.MkdirAll(at, 0o755))
			continue
		}
		file, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY, h.FileInfo().Mode())
		check(t, err)
		_, err = io.Copy(file, files)
		check(t, errors.Join(err, file.Close()))
	}
}

// TestImage validates the image, of both architectures, and runs the program from its layers, alone as in a container.
func TestImage(t *testing.T) {
	if here.os != "linux" {
		t.Skip("the image is of Linux")
	}
	both := *made(t)
	// What the other one's program is, the layout does not know.
	both.targets = allTargets[:2]
	both.binaries = map[target][]byte{allTargets[0]: both.binaries[here], allTargets[1]: both.binaries[here]}
	var image bytes.Buffer
	check(t, both.writeImage(&image))
	folder := t.TempDir()
	unpack(t, &image, folder)
	index, err := layout.ImageIndexFromPath(folder)
	check(t, err)
	check(t, validate.Index(index))
	outer, err := index.IndexManifest()
	check(t, err)
	if len(outer.Manifests) != 1 || outer.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != version {
		t.Fatalf("%+v", outer)
	}
	inner, err := index.ImageIndex(outer.Manifests[0].Digest)
	check(t, err)
	manifest, err := inner.IndexManifest()
	check(t, err)
	for i, arch := range []string{"amd64", "arm64"} {
		if got := manifest.Manifests[i].Platform; got.OS != "linux" || got.Architecture != arch {
			t.Errorf("%+v", got)
		}
	}
	own := slices.IndexFunc(manifest.Manifests, func(m v1.Descriptor) bool { return m.Platform.Architecture == here.arch })
	found, err := inner.Image(manifest.Manifests[own].Digest)
	check(t, err)
	runImage(t, found)
}

// runImage runs the program with nothing but what the image has.
func runImage(t *testing.T, image v1.Image) {
	t.Helper()
	config, err := image.ConfigFile()
	check(t, err)
	c := config.Config
	if c.User != "65532:65532" || !slices.Equal(c.Cmd, []string{"serve"}) || !config.Created.Time.Equal(made(t).time) {
		t.Errorf("%+v", config)
	}
	folder := t.TempDir()
	files := mutate.Extract(image)
	unpack(t, files, folder)
	check(t, files.Close())
	if roots := fileOf(t, filepath.Join(folder, "etc/ssl/certs/ca-certificates.crt")); bytes.Count(roots, []byte("BEGIN CERTIFICATE")) < 50 {
		t.Errorf("the image has the certificates %.200s", roots)
	}
	run := exec.Command(c.Entrypoint[0], "version")
	run.Env = c.Env
	if asRoot(t) {
		check(t, os.Chmod(folder, 0o755))
		run.SysProcAttr = &syscall.SysProcAttr{Chroot: folder, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		run.Dir = "/"
	} else {
		run.Path = filepath.Join(folder, run.Path)
	}
	said, err := output(run)
	if err != nil || !bytes.HasPrefix(said, []byte("partnerapi "+version+"\n")) {
		t.Errorf("%s, %v", said, err)
	}
}
