package drive

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/api/docs/v1"
	"google.golang.org/api/drive/v3"
	"google.golang.org/api/forms/v1"
	"google.golang.org/api/sheets/v4"
	"google.golang.org/api/slides/v1"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
)

// maxBegin bounds how much of a file a card quotes, in bytes; service.Quoted shortens it to characters.
const maxBegin = 1000

// describesFile returns the operation that says what a file or folder is, whose it is and whether others see it.
// Documents, spreadsheets, presentations and forms are files as well.
func describesFile() service.Operation { return service.NewOperation(drive.NewService, describeFile) }

func describeFile(ctx context.Context, api *drive.Service, _ *service.Conn, in service.Resource) (any, error) {
	f, err := api.Files.Get(in.ID).Context(ctx).SupportsAllDrives(true).
		Fields("name,mimeType,driveId,owners(displayName,emailAddress),ownedByMe,shared").Do()
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("%s (%s), ", service.Quoted(f.Name), kindOf(f))
	if f.DriveId != "" { // such a file has no owner, and Google does not say that it is shared
		return text + "in a shared drive", nil
	}
	owner, shared := "you", "no"
	if !f.OwnedByMe {
		owner = "unknown"
		if len(f.Owners) > 0 {
			owner = service.Person(f.Owners[0].DisplayName, f.Owners[0].EmailAddress)
		}
	}
	if f.Shared {
		shared = "yes"
	}
	return fmt.Sprintf("%sowner: %s, shared with others: %s", text, owner, shared), nil
}

// kindOf names the type of a file, which the author of a file chooses unless it is one of Google's own.
func kindOf(f *drive.File) string {
	kind, native := strings.CutPrefix(f.MimeType, driveNativePrefix)
	if native && slices.Contains([]string{"folder", "document", "spreadsheet", "presentation", "form", "shortcut"}, kind) {
		return kind
	}
	return service.Quoted(f.MimeType)
}

// describeLocalFile says what an upload takes from the workspace: a file just as somebody sent it, or one that the model
// may have written, with how it begins. The sum is that of the file, so that an approval is of this content alone.
func describeLocalFile(_ context.Context, _ *drive.Service, c *service.Conn, in service.Resource) (any, error) {
	data, base, err := c.ReadFile(in.ID)
	if err != nil {
		return nil, err
	}
	sum := toolgroups.SumOf(data)
	origin := "not as anybody sent it here, "
	switch begin := string(data[:min(len(data), maxBegin)]); {
	case slices.Contains(c.Received, sum):
		origin = "just as it was sent here"
	case strings.HasPrefix(http.DetectContentType(data), "text/"):
		origin += "begins with " + service.Quoted(strings.ToValidUTF8(begin, ""))
	default:
		origin += "no text"
	}
	return fmt.Sprintf("%s in the workspace, %d bytes, %s (SHA-256 %.16s)", service.Quoted(base), len(data), origin, sum), nil
}

// titleAlone describes a document of which Drive says nothing, because the user has not granted its permission.
func titleAlone(title string) (any, error) {
	return service.Quoted(title) + ", owner and sharing cannot be read", nil
}

func docsTitle(ctx context.Context, api *docs.Service, _ *service.Conn, in service.Resource) (any, error) {
	d, err := api.Documents.Get(in.ID).Context(ctx).Fields("title").Do()
	if err != nil {
		return nil, err
	}
	return titleAlone(d.Title)
}

func sheetsTitle(ctx context.Context, api *sheets.Service, _ *service.Conn, in service.Resource) (any, error) {
	s, err := api.Spreadsheets.Get(in.ID).Context(ctx).Fields("properties.title").Do()
	if err != nil {
		return nil, err
	}
	return titleAlone(cmp.Or(s.Properties, &sheets.SpreadsheetProperties{}).Title)
}

func slidesTitle(ctx context.Context, api *slides.Service, _ *service.Conn, in service.Resource) (any, error) {
	p, err := api.Presentations.Get(in.ID).Context(ctx).Fields("title").Do()
	if err != nil {
		return nil, err
	}
	return titleAlone(p.Title)
}

func formsTitle(ctx context.Context, api *forms.Service, _ *service.Conn, in service.Resource) (any, error) {
	f, err := api.Forms.Get(in.ID).Context(ctx).Fields("info(title,documentTitle)").Do()
	if err != nil {
		return nil, err
	}
	info := cmp.Or(f.Info, &forms.Info{})
	return titleAlone(cmp.Or(info.DocumentTitle, info.Title))
}

type slideArgs struct {
	service.Resource
	PresentationID string `json:"presentation_id"`
}

// describeSlide says where a slide is in its presentation, and what it says.
func describeSlide(ctx context.Context, api *slides.Service, _ *service.Conn, in slideArgs) (any, error) {
	p, err := api.Presentations.Get(in.PresentationID).Context(ctx).Fields("slides(objectId,pageElements)").Do()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(p.Slides, func(s *slides.Page) bool { return s.ObjectId == in.ID })
	if at < 0 {
		return nil, service.Invalidf("the presentation has no such slide")
	}
	text := strings.Join(slidesAppendTexts(nil, p.Slides[at].PageElements), " ")
	return fmt.Sprintf("number %d of %d, with the text %s", at+1, len(p.Slides), service.Quoted(text)), nil
}
