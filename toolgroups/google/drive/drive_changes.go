package drive

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/api/drive/v3"

	"oneclaw/toolgroups/google/service"
)

func driveCreateFolder(ctx context.Context, api *drive.Service, _ *service.Conn, in driveArgs) (any, error) {
	folder := &drive.File{Name: in.Name, MimeType: driveFolder, Parents: driveParents(in.ParentID)}
	return api.Files.Create(folder).Context(ctx).SupportsAllDrives(true).Fields(driveFields).Do()
}

// driveParents returns the parents of a new file; nil means the root folder.
func driveParents(id string) []string {
	if strings.TrimSpace(id) == "" {
		return nil
	}
	return []string{id}
}

func driveDeleteFile(ctx context.Context, api *drive.Service, _ *service.Conn, in driveArgs) (any, error) {
	// The API's "delete" would bypass the trash.
	return api.Files.Update(in.FileID, &drive.File{Trashed: true}).Context(ctx).SupportsAllDrives(true).
		Fields("id,name,trashed").Do()
}

func driveRenameFile(ctx context.Context, api *drive.Service, _ *service.Conn, in driveArgs) (any, error) {
	return api.Files.Update(in.FileID, &drive.File{Name: in.NewName}).Context(ctx).SupportsAllDrives(true).
		Fields(driveFields).Do()
}

func driveMoveFile(ctx context.Context, api *drive.Service, _ *service.Conn, in driveArgs) (any, error) {
	target := in.NewParentID
	if target == driveRoot {
		// Parents are listed by id, so the alias would not match.
		root, err := api.Files.Get(driveRoot).Context(ctx).Fields("id").Do()
		if err != nil {
			return nil, err
		}
		target = root.Id
	}
	f, err := driveMetadata(ctx, api, in.FileID)
	if err != nil {
		return nil, err
	}
	if len(f.Parents) == 1 && f.Parents[0] == target {
		return f, nil
	}
	call := api.Files.Update(in.FileID, &drive.File{}).Context(ctx).SupportsAllDrives(true).
		AddParents(target).Fields(driveFields)
	// A file owned by another user may show no parents.
	if old := slices.DeleteFunc(f.Parents, func(id string) bool { return id == target }); len(old) > 0 {
		call.RemoveParents(strings.Join(old, ","))
	}
	return call.Do()
}

func driveShareFile(ctx context.Context, api *drive.Service, _ *service.Conn, in driveArgs) (any, error) {
	email := strings.TrimSpace(in.Email)
	if !strings.Contains(email, "@") {
		return nil, service.Invalidf("'email' must be an address, not %q", in.Email)
	}
	grant := &drive.Permission{Type: "user", Role: in.Role, EmailAddress: email}
	return api.Permissions.Create(in.FileID, grant).Context(ctx).SupportsAllDrives(true).
		SendNotificationEmail(in.SendNotification == nil || *in.SendNotification).Fields("id,type,role,emailAddress").Do()
}

func driveCopy(ctx context.Context, api *drive.Service, _ *service.Conn, in driveArgs) (any, error) {
	return api.Files.Copy(in.FileID, &drive.File{Name: in.Name, Parents: driveParents(in.ParentID)}).Context(ctx).
		SupportsAllDrives(true).Fields(driveFields).Do()
}
