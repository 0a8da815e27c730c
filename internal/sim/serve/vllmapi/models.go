package vllmapi

import (
	"net/http"

	"pitot/internal/sim/serve/dialect"
)

// modelCard is one entry of /v1/models.
type modelCard struct {
	ID          string       `json:"id"`
	Object      string       `json:"object"`
	Created     int64        `json:"created"`
	OwnedBy     string       `json:"owned_by"`
	Root        string       `json:"root"`
	Parent      *string      `json:"parent"`
	MaxModelLen int          `json:"max_model_len"`
	Permission  []permission `json:"permission"`
}

// permission lists the rights of clients to a model; it is for clients that expect one.
type permission struct {
	ID                 string  `json:"id"`
	Object             string  `json:"object"`
	Created            int64   `json:"created"`
	AllowCreateEngine  bool    `json:"allow_create_engine"`
	AllowSampling      bool    `json:"allow_sampling"`
	AllowLogprobs      bool    `json:"allow_logprobs"`
	AllowSearchIndices bool    `json:"allow_search_indices"`
	AllowView          bool    `json:"allow_view"`
	AllowFineTuning    bool    `json:"allow_fine_tuning"`
	Organization       string  `json:"organization"`
	Group              *string `json:"group"`
	IsBlocking         bool    `json:"is_blocking"`
}

type modelList struct {
	Object string      `json:"object"`
	Data   []modelCard `json:"data"`
}

// answerModels answers /v1/models.
func (a *api) answerModels(*dialect.Request) dialect.Reply {
	began := int64(a.Began)
	return dialect.JSON(http.StatusOK, modelList{"list", []modelCard{{
		ID: a.Name, Object: "model", Created: began, OwnedBy: "pitot",
		Root: a.Name, MaxModelLen: a.MaxModelLen, Permission: []permission{{
			ID: "modelperm-" + a.Name, Object: "model_permission", Created: began,
			AllowSampling: true, AllowLogprobs: true, AllowView: true, Organization: "*",
		}},
	}}})
}
