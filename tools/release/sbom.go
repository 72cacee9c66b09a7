package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// writeSBOM writes the program's components, in CycloneDX 1.6.
func (r *release) writeSBOM(w io.Writer) error {
	own := component(part{name: "partnerapi", version: r.version, purl: goPURL("partnerapi", r.version)}, []string{"Apache-2.0"})
	own.Type = cdx.ComponentTypeApplication
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &own}
	var components []cdx.Component
	var needs []cdx.Dependency
	var all []string
	for _, p := range r.parts {
		ids, err := p.ids()
		if err != nil {
			return err
		}
		components = append(components, component(p, ids))
		needs = append(needs, cdx.Dependency{Ref: p.purl, Dependencies: &p.needs})
		all = append(all, p.purl)
	}
	for _, p := range r.parts { // what a part needs, the program needs by that
		all = slices.DeleteFunc(all, func(purl string) bool { return slices.Contains(p.needs, purl) })
	}
	needs = append(needs, cdx.Dependency{Ref: own.BOMRef, Dependencies: &all})
	bom.Components, bom.Dependencies = &components, &needs

	var body bytes.Buffer
	encode := func() error {
		body.Reset()
		return cdx.NewBOMEncoder(&body, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
	}
	if err := encode(); err != nil {
		return err
	}
	bom.SerialNumber = uuid.NewSHA1(uuid.Nil, body.Bytes()).URN()
	if err := encode(); err != nil {
		return err
	}
	_, err := body.WriteTo(w)
	return err
}

// component describes a part.
func component(p part, ids []string) cdx.Component {
	c := cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: p.purl, Name: p.name, Version: p.version, PackageURL: p.purl,
		Scope: cdx.ScopeRequired}
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.sum, "h1:")); err == nil && len(sum) > 0 {
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	var licenses cdx.Licenses
	for _, id := range ids {
		licenses = append(licenses, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	c.Licenses = &licenses
	return c
}
