package drive

import (
	"cmp"
	"context"
	"strings"

	"google.golang.org/api/drive/v3"
	"google.golang.org/api/googleapi"

	"oneclaw/toolgroups/google/service"
)

// Sizes of Drive's lists (developers.google.com/workspace/drive/api/reference/rest/v3).
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
			"driveListFiles":       service.NewOperation(drive.NewService, driveListFiles),
			"driveGetFile":         service.NewOperation(drive.NewService, driveGetFile),
			"driveDownload":        service.NewOperation(drive.NewService, driveDownload),
			"driveUpload":          service.NewOperation(drive.NewService, driveUpload),
			"driveCreateFolder":    service.NewOperation(drive.NewService, driveCreateFolder),
			"driveDeleteFile":      service.NewOperation(drive.NewService, driveDeleteFile),
			"driveRenameFile":      service.NewOperation(drive.NewService, driveRenameFile),
			"driveMoveFile":        service.NewOperation(drive.NewService, driveMoveFile),
			"driveShareFile":       service.NewOperation(drive.NewService, driveShareFile),
			"driveExport":          service.NewOperation(drive.NewService, driveExport),
			"driveGetStorageQuota": service.NewOperation(drive.NewService, driveGetStorageQuota),
			"driveListShared":      service.NewOperation(drive.NewService, driveListShared),
			"driveSearch":          service.NewOperation(drive.NewService, driveSearch),
			"driveCopy":            service.NewOperation(drive.NewService, driveCopy),
			"drivePermissions":     service.NewOperation(drive.NewService, drivePermissions),
		},
		Resources: service.Resources{
			"file_id": describesFile(), "parent_id": describesFile(), "new_parent_id": describesFile(),
			"file_path": service.NewOperation(drive.NewService, describeLocalFile),
		},
	}
}

type driveArgs struct {
	FileID           string `json:"file_id"`
	Query            string `json:"query"`
	MaxResults       int    `json:"max_results"`
	PageToken        string `json:"page_token"`
	ParentID         string `json:"parent_id"`
	NewParentID      string `json:"new_parent_id"`
	Name             string `json:"name"`
	NewName          string `json:"new_name"`
	MimeType         string `json:"mime_type"`
	FilePath         string `json:"file_path"`
	SavePath         string `json:"save_path"`
	Email            string `json:"email"`
	Role             string `json:"role"`
	SendNotification *bool  `json:"send_notification"`
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
	if in.ParentID != "" {
		query += " and " + driveQuote(in.ParentID) + " in parents"
	}
	if q := strings.TrimSpace(in.Query); q != "" {
		// An "or" in q must not undo the conditions before it.
		query += " and (" + q + ")"
	}
	files, next, err := driveList(ctx, api, query, in.PageToken, service.ClampLimit(in.MaxResults, defaultDriveFiles, maxDriveFiles))
	return service.Page("files", files, next), err
}

// driveListResult is the result of tools without a page token. HasMore is true if the maximum cut the
// list.
type driveListResult struct {
	Files   []*drive.File `json:"files"`
	HasMore bool          `json:"more,omitempty"`
}

func driveSearch(ctx context.Context, api *drive.Service, _ *service.Conn, in driveArgs) (any, error) {
	if strings.TrimSpace(in.Query) == "" {
		return nil, service.Invalidf("'query' is empty")
	}
	text := driveQuote(in.Query)
	return driveQueryFiles(ctx, api, "(name contains "+text+" or fullText contains "+text+") and trashed=false", in)
}

func driveListShared(ctx context.Context, api *drive.Service, _ *service.Conn, in driveArgs) (any, error) {
	return driveQueryFiles(ctx, api, "sharedWithMe and trashed=false", in)
}

func driveQueryFiles(ctx context.Context, api *drive.Service, query string, in driveArgs) (any, error) {
	files, next, err := driveList(ctx, api, query, "", service.ClampLimit(in.MaxResults, defaultDriveFiles, maxDriveFiles))
	return driveListResult{files, next != ""}, err
}

func driveGetFile(ctx context.Context, api *drive.Service, _ *service.Conn, in driveArgs) (any, error) {
	return driveMetadata(ctx, api, in.FileID)
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
	call := api.Permissions.List(in.FileID).Context(ctx).SupportsAllDrives(true).
		Fields(googleapi.Field("permissions("+drivePermissionFields+")"), "nextPageToken")
	size := func(n int64) *drive.PermissionsListCall { return call.PageSize(min(n, drivePermissionsPage)) }
	all, _, err := service.Collect(maxDrivePermissions, call, size, func(page *drive.PermissionList) ([]*drive.Permission, string) {
		return page.Permissions, page.NextPageToken
	})
	return service.Page("permissions", all, ""), err
}
