package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// no one is the user of the image, as in the Dockerfile.
const nobody = 65532

// writeImage writes the image of the targets on Linux, as a layout of OCI in a tar file.
func (r *release) writeImage(w io.Writer) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, t := range r.targets {
		if t.os != "linux" {
			continue
		}
		image, err := r.image(t)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: t.os, Architecture: t.arch}}})
	}
	folder, err := os.MkdirTemp("", "partnerapi-image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.version})
	if err := path.AppendIndex(index, named); err != nil {
		return err
	}
	files, err := entriesOf(folder)
	if err != nil {
		return err
	}
	return writeTar(w, files, r.time)
}

// image returns the image of a target: one layer with what the program needs, and one with the program.
func (r *release) image(t target) (v1.Image, error) {
	license, err := r.read("LICENSE")
	if err != nil {
		return nil, err
	}
	const documents = "usr/share/doc/partnerapi/"
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, files := range [][]entry{{
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: certificates()},
		{name: documents + "LICENSE", mode: 0o644, data: license},
		{name: documents + licensesFile, mode: 0o644, data: licenseTexts(r.parts)},
		{name: "data", mode: fs.ModeDir | 0o700, owner: nobody}, // a new volume takes the owner of the folder below it
		{name: "tmp", mode: fs.ModeDir | 0o700, owner: nobody},
	}, {
		{name: "partnerapi", mode: 0o755, data: r.binaries[t]},
	}} {
		if image, err = r.withLayer(image, files); err != nil {
			return nil, err
		}
	}
	about, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	about = about.DeepCopy()
	about.OS, about.Architecture, about.Created = t.os, t.arch, v1.Time{Time: r.time}
	about.Config = v1.Config{
		User:         fmt.Sprintf("%d:%[1]d", nobody),
		Env:          []string{"PARTNERAPI_DATA_DIR=/data", "PARTNERAPI_LISTEN=0.0.0.0:8080", "PARTNERAPI_LOG_FORMAT=json"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Entrypoint:   []string{"/partnerapi"},
		Cmd:          []string{"serve"},
		Labels: map[string]string{
			"org.opencontainers.image.title": "partnerapi", "org.opencontainers.image.version": r.version,
			"org.opencontainers.image.revision": r.commit, "org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, about)
}

// withLayer adds a layer of files.
func (r *release) withLayer(image v1.Image, files []entry) (v1.Image, error) {
	var data bytes.Buffer
	if err := writeTar(&data, files, r.time); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data.Bytes())), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	return mutate.Append(image, mutate.Addendum{Layer: layer, MediaType: types.OCILayer,
		History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "make release"}})
}

// certificates are those of the authorities that Mozilla trusts without reserve, of a module's version and not of
// the machine that builds the image.
func certificates() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // into memory
		}
	}
	return all.Bytes()
}

// entriesOf returns the files of a folder.
func entriesOf(folder string) (found []entry, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name := filepath.ToSlash(strings.TrimPrefix(path, folder+string(filepath.Separator)))
		found = append(found, entry{name: name, mode: 0o644, data: data})
		return err
	})
	return found, err
}
