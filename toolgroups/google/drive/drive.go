package drive

import (
	"cmp"
	"context"
	"strings"

	"google.golang.org/api/drive/v3"
	"google.golang.org/api/googleapi"

	"oneclaw/toolgroups/google/service"
)

// Maxima of the lists of Drive (developers.google.com/workspace/drive/api/reference/rest/v3).
const (
	maxDriveFiles        = 1000
	defaultDriveFiles    = 20
	maxDrivePermissions  = 1000
	drivePermissionsPage = 100
)

// Fields of files and permissions.
const (
	driveFields           = "id,name,mimeType,size,modifiedTime,parents,webViewLink,webContentLink,shortcutDetails(targetId,targetMimeType)"
	drivePermissionFields = "id,type,role,emailAddress,displayName,domain"
	driveFolder           = "application/vnd.google-apps.folder"
	driveRoot             = "root"
)

// Drive returns the group of tools for files.
func Drive() service.Group {
	return service.Group{
		Name:      "google_drive",
		Scopes:    []string{drive.DriveScope},
		Manifests: manifests,
		Operations: service.Operations{
			"driveListFiles":       service.With(drive.NewService, driveListFiles),
			"driveGetFile":         service.With(drive.NewService, driveGetFile),
			"driveDownload":        service.With(drive.NewService, driveDownload),
			"driveUpload":          service.With(drive.NewService, driveUpload),
			"driveCreateFolder":    service.With(drive.NewService, driveCreateFolder),
			"driveDeleteFile":      service.With(drive.NewService, driveDeleteFile),
			"driveRenameFile":      service.With(drive.NewService, driveRenameFile),
			"driveMoveFile":        service.With(drive.NewService, driveMoveFile),
			"driveShareFile":       service.With(drive.NewService, driveShareFile),
			"driveExport":          service.With(drive.NewService, driveExport),
			"driveGetStorageQuota": service.With(drive.NewService, driveGetStorageQuota),
			"driveListShared":      service.With(drive.NewService, driveListShared),
			"driveSearch":          service.With(drive.NewService, driveSearch),
			"driveCopy":            service.With(drive.NewService, driveCopy),
			"drivePermissions":     service.With(drive.NewService, drivePermissions),
		},
	}
}

type driveArgs struct {
	File       string `json:"file_id"`
	Query      string `json:"query"`
	MaxResults int    `json:"max_results"`
	Token      string `json:"page_token"`
	Parent     string `json:"parent_id"`
	NewParent  string `json:"new_parent_id"`
	Name       string `json:"name"`
	NewName    string `json:"new_name"`
	MimeType   string `json:"mime_type"`
	Upload     string `json:"file_path"`
	Save       string `json:"save_path"`
	Email      string `json:"email"`
	Role       string `json:"role"`
	Notify     *bool  `json:"send_notification"`
}

// driveList collects the results of a query, starting at the page token.
func driveList(ctx context.Context, api *drive.Service, query, token string, limit int) ([]*drive.File, string, error) {
	call := api.Files.List().Context(ctx).Q(query).Fields("files("+driveFields+")", "nextPageToken").
		SupportsAllDrives(true).IncludeItemsFromAllDrives(true)
	if token != "" {
		call.PageToken(token)
	}
	return service.Collect(limit, call, call.PageSize, func(page *drive.FileList) ([]*drive.File, string) {
		return page.Files, page.NextPageToken
	})
}

// driveQuote quotes a text as a literal in a query.
func driveQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

func driveListFiles(ctx context.Context, api *drive.Service, _ *service.Conn, in driveArgs) (any, error) {
	query := "trashed=false"
	if in.Parent != "" {
		query += " and " + driveQuote(in.Parent) + " in parents"
	}
	if q := strings.TrimSpace(in.Query); q != "" {
		// An "or" in q must not undo the conditions before it.
		query += " and (" + q + ")"
	}
	files, next, err := driveList(ctx, api, query, in.Token, service.Bounded(in.MaxResults, defaultDriveFiles, maxDriveFiles))
	return service.Page("files", files, next), err
}

// driveShared is the result of tools without a page token. More says that the maximum cut the
// list.
type driveShared struct {
	Files []*drive.File `json:"files"`
	More  bool          `json:"more,omitempty"`
}

func driveSearch(ctx context.Context, api *drive.Service, _ *service.Conn, in driveArgs) (any, error) {
	if strings.TrimSpace(in.Query) == "" {
		return nil, service.Invalidf("'query' is empty")
	}
	text := driveQuote(in.Query)
	return driveFound(ctx, api, "(name contains "+text+" or fullText contains "+text+") and trashed=false", in)
}

func driveListShared(ctx context.Context, api *drive.Service, _ *service.Conn, in driveArgs) (any, error) {
	return driveFound(ctx, api, "sharedWithMe and trashed=false", in)
}

func driveFound(ctx context.Context, api *drive.Service, query string, in driveArgs) (any, error) {
	files, next, err := driveList(ctx, api, query, "", service.Bounded(in.MaxResults, defaultDriveFiles, maxDriveFiles))
	return driveShared{files, next != ""}, err
}

func driveGetFile(ctx context.Context, api *drive.Service, _ *service.Conn, in driveArgs) (any, error) {
	return driveMetadata(ctx, api, in.File)
}

func driveMetadata(ctx context.Context, api *drive.Service, id string) (*drive.File, error) {
	return api.Files.Get(id).Context(ctx).SupportsAllDrives(true).Fields(driveFields).Do()
}

func driveGetStorageQuota(ctx context.Context, api *drive.Service, _ *service.Conn, _ struct{}) (any, error) {
	about, err := api.About.Get().Context(ctx).Fields("storageQuota").Do()
	if err != nil {
		return nil, err
	}
	quota := cmp.Or(about.StorageQuota, &drive.AboutStorageQuota{})
	quota.ForceSendFields = []string{"Usage", "UsageInDrive", "UsageInDriveTrash"} // an account without a quota has no Limit
	return quota, nil
}

func drivePermissions(ctx context.Context, api *drive.Service, _ *service.Conn, in driveArgs) (any, error) {
	call := api.Permissions.List(in.File).Context(ctx).SupportsAllDrives(true).
		Fields(googleapi.Field("permissions("+drivePermissionFields+")"), "nextPageToken")
	size := func(n int64) *drive.PermissionsListCall { return call.PageSize(min(n, drivePermissionsPage)) }
	all, _, err := service.Collect(maxDrivePermissions, call, size, func(page *drive.PermissionList) ([]*drive.Permission, string) {
		return page.Permissions, page.NextPageToken
	})
	return service.Page("permissions", all, ""), err
}
