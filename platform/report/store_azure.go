package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// azure keeps objects in a container of Azure Blob Storage.
type azure struct{ container *container.Client }

// openAzure opens azblob://container. It sends no request yet.
func openAzure(u *url.URL) (*azure, error) {
	client, err := azureClient(u.Query())
	if err != nil {
		return nil, fmt.Errorf("the store %s cannot be opened: %w", bare(u), err)
	}
	return &azure{client.ServiceClient().NewContainerClient(u.Host)}, nil
}

// azureClient returns a client for the account of AZURE_STORAGE_CONNECTION_STRING, otherwise of the store's URL or the
// other variables AZURE_STORAGE_…. Without a connection string, a key or a SAS token it uses the identity of this
// machine or process.
func azureClient(query url.Values) (*azblob.Client, error) {
	if text := os.Getenv("AZURE_STORAGE_CONNECTION_STRING"); text != "" {
		return azblob.NewClientFromConnectionString(text, nil)
	}
	account := cmp.Or(query.Get("storage_account"), os.Getenv("AZURE_STORAGE_ACCOUNT"))
	if account == "" {
		return nil, errors.New("set the account in AZURE_STORAGE_ACCOUNT or as ?storage_account=…")
	}
	domain := cmp.Or(query.Get("domain"), os.Getenv("AZURE_STORAGE_DOMAIN"), "blob.core.windows.net")
	service := "https://" + account + "." + domain + "/"

	if key := os.Getenv("AZURE_STORAGE_KEY"); key != "" {
		credential, err := azblob.NewSharedKeyCredential(account, key)
		if err != nil {
			return nil, fmt.Errorf("AZURE_STORAGE_KEY: %w", err)
		}
		return azblob.NewClientWithSharedKeyCredential(service, credential, nil)
	}
	if token := os.Getenv("AZURE_STORAGE_SAS_TOKEN"); token != "" {
		return azblob.NewClientWithNoCredential(service+"?"+token, nil)
	}
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, err
	}
	return azblob.NewClient(service, credential, nil)
}

// exists reports whether the container exists.
func (a *azure) exists(ctx context.Context) (bool, error) {
	_, err := a.container.GetProperties(ctx, nil)
	if bloberror.HasCode(err, bloberror.ContainerNotFound) {
		return false, nil
	}
	return err == nil, err
}

func (a *azure) put(ctx context.Context, key, contentType string, file io.ReadSeeker) error {
	_, err := a.container.NewBlockBlobClient(key).UploadStream(ctx, file, &azblob.UploadStreamOptions{
		BlockSize: chunk, Concurrency: 1, HTTPHeaders: &blob.HTTPHeaders{BlobContentType: &contentType},
	})
	return err
}

// open opens a blob. The error is ErrNoFile if there is no such blob. Later reads fail if the blob was replaced.
func (a *azure) open(ctx context.Context, key string) (*File, error) {
	client := a.container.NewBlobClient(key)
	properties, err := client.GetProperties(ctx, nil)
	if bloberror.HasCode(err, bloberror.BlobNotFound, bloberror.ContainerNotFound) {
		return nil, ErrNoFile
	}
	if err != nil {
		return nil, err
	}
	file := &azureFile{ctx: ctx, client: client, size: *properties.ContentLength, etag: &blob.ModifiedAccessConditions{
		IfMatch: properties.ETag,
	}}
	return &File{ReadSeekCloser: file, ModTime: *properties.LastModified}, nil
}

// remove deletes a blob. A blob that does not exist is no error.
func (a *azure) remove(ctx context.Context, key string) error {
	_, err := a.container.NewBlobClient(key).Delete(ctx, nil)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return nil
	}
	return err
}

// azureFile reads a blob, over the response to one request at a time.
type azureFile struct {
	ctx    context.Context // of the caller of open
	client *blob.Client
	etag   *blob.ModifiedAccessConditions
	size   int64
	offset int64
	body   io.ReadCloser // nil before a Read, and after a Seek
}

// Read reads at the offset. The first Read, and the first after a Seek, requests the rest of the blob.
func (f *azureFile) Read(p []byte) (int, error) {
	if f.offset >= f.size {
		return 0, io.EOF
	}
	if f.body == nil {
		answer, err := f.client.DownloadStream(f.ctx, &blob.DownloadStreamOptions{
			Range:            blob.HTTPRange{Offset: f.offset},
			AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: f.etag},
		})
		if err != nil {
			return 0, err
		}
		f.body = answer.NewRetryReader(f.ctx, nil)
	}
	n, err := f.body.Read(p)
	f.offset += int64(n)
	return n, err
}

// Seek sets the offset. It closes the response in progress, so that the next Read sends a request.
func (f *azureFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.offset
	case io.SeekEnd:
		offset += f.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the beginning")
	}
	f.offset = offset
	return offset, f.Close()
}

// Close closes the response in progress, if there is one.
func (f *azureFile) Close() error {
	if f.body == nil {
		return nil
	}
	err := f.body.Close()
	f.body = nil
	return err
}
