"""
Every error that vlmcore raises on purpose; anything else is a bug of ours, please report it.

::

    VlmcoreError
    ├─ ContractError (ValueError)             a value breaks the contract of its field
    │  ├─ AmbiguousResponseError              an answer of a policy has more than one reading
    │  ├─ DocumentError                       a document has faults, each with its place
    │  └─ LimitExceededError                  a size is over a declared limit
    ├─ EndpointError (ValueError)             an address that may not be dialled
    ├─ EpisodeError (ValueError)              a file of an episode cannot be written or read
    ├─ LabError                               a measurement cannot be made, kept or compared
    │  ├─ ArtifactError (ValueError)          the evidence of a run cannot be written or read
    │  │  └─ ArtifactTamperedError            it is not what was written
    │  ├─ SuiteError (ValueError)             what is to be measured cannot be read
    │  └─ InputMismatchError (ValueError)     two runs were not given the same
    ├─ GraphError                             a graph was not run to its end in a ComfyUI
    │  ├─ GraphServerError (ConnectionError)  it cannot be reached, or hung up
    │  ├─ GraphRefusedError (ValueError)      it does not take the graph
    │  ├─ GraphFailedError                    a node failed
    │  └─ GraphStoppedError                   somebody stopped it
    ├─ JobError                               a job over many images cannot begin or go on
    │  ├─ JobSourceError (ValueError)         what names its images cannot be read
    │  ├─ JobSinkError                        what it makes cannot be written
    │  ├─ JobJournalError                     its journal cannot be used
    │  └─ JobRunningError                     another one is at work in the same place
    ├─ MediaError (ValueError)                an image, video or audio cannot be read
    │  └─ MediaLimitError                     it is larger than the limits allow
    ├─ MissingDependencyError (ImportError)   an optional package is not installed
    ├─ ModelError                             a model cannot be used
    │  ├─ ModelAccessError                    not found, gated, or the hub is out of reach
    │  ├─ UnsupportedModelError               found, but not of a kind that we can run
    │  ├─ ModelMemoryError (MemoryError)      it does not fit into memory
    │  ├─ GenerationError                     it failed while generating
    │  │  └─ StructureError                   its answer is not the JSON that was asked for
    │  ├─ DetectionError                      it failed while looking for things
    │  │  └─ DetectionCancelledError          the caller ended the search
    │  ├─ IncompleteAnswersError              some of many prompts were not answered
    │  └─ ModelServerError                    it is behind a server, which gave no answer
    │     ├─ ModelServerUnavailableError (ConnectionError)  it cannot be reached
    │     ├─ ModelServerTimeoutError (TimeoutError)  it did not end in time
    │     ├─ ModelServerProtocolError         it broke its protocol, or hung up
    │     └─ ModelServerRefusedError          it answered with an error of its own
    │        ├─ ModelServerKeyError           the key
    │        ├─ ModelServerRateLimitError     too much was asked in a short time
    │        ├─ ModelServerBusyError          it failed on its side
    │        └─ ModelNotServedError (ModelAccessError)  it does not know the model
    ├─ MusicError                             a service made no music
    │  ├─ MusicUnavailableError (ConnectionError)  it cannot be reached
    │  ├─ MusicTimeoutError (TimeoutError)    it did not end in time
    │  ├─ MusicCancelledError                 the caller ended the call
    │  ├─ MusicProtocolError                  it broke its protocol
    │  ├─ MusicIncompleteError                the audio ended before it was whole
    │  ├─ MusicDownloadError                  it is made, and did not come from where it lies
    │  └─ MusicRefusedError                   it answered with an error of its own
    │     ├─ MusicRateLimitError              too much was asked in a short time
    │     ├─ MusicBusyError                   it failed on its side
    │     ├─ MusicKeyError                    the key
    │     ├─ MusicBalanceError                the money
    │     ├─ MusicBlockedError                the content
    │     └─ MusicParametersError             the parameters
    ├─ PolicyError                            a policy cannot be used
    │  ├─ PolicyUnavailableError (ConnectionError)  it cannot be reached
    │  ├─ PolicyTimeoutError (TimeoutError)   it was reached, and then silent for too long
    │  ├─ PolicyProtocolError                 one side broke the protocol
    │  └─ PolicyRefusedError                  it answered with an error of its own
    │     └─ PolicyStatusError                over HTTP, with a status
    ├─ UnsafeActionError                      actions are not safe to execute
    └─ WeightsError                           a file of weights cannot be read or written
       ├─ CorruptWeightsError (ValueError)    what it says about its weights cannot be true
       │  └─ WeightChecksumError              its weights are not those of the manifest
       ├─ WeightsChangedError                 it changed after it was opened
       ├─ WeightsCancelledError               the caller stopped a load
       ├─ WeightsLimitError (ValueError)      it is larger than the limits allow
       ├─ WeightMismatchError                 its weights are not those of the model
       └─ WeightsBudgetError (MemoryError)    they need more memory than they may take

Arguments are data: each error keeps them as attributes and in ``args``, so errors can be pickled
(they cross process boundaries in data loaders and job engines) and read without parsing text.
"""

from __future__ import annotations

from vlmcore.errors._base import (
    VlmcoreError,
)
from vlmcore.errors._graphs import (
    GraphError,
    GraphFailedError,
    GraphRefusedError,
    GraphServerError,
    GraphStoppedError,
)
from vlmcore.errors._jobs import (
    JobError,
    JobJournalError,
    JobRunningError,
    JobSinkError,
    JobSourceError,
)
from vlmcore.errors._lab import (
    ArtifactError,
    ArtifactTamperedError,
    InputMismatchError,
    LabError,
    SuiteError,
)
from vlmcore.errors._model_servers import (
    ModelNotServedError,
    ModelServerBusyError,
    ModelServerError,
    ModelServerKeyError,
    ModelServerProtocolError,
    ModelServerRateLimitError,
    ModelServerRefusedError,
    ModelServerTimeoutError,
    ModelServerUnavailableError,
)
from vlmcore.errors._models import (
    DetectionCancelledError,
    DetectionError,
    GenerationError,
    IncompleteAnswersError,
    ModelAccessError,
    ModelError,
    ModelMemoryError,
    StructureError,
    UnsupportedModelError,
)
from vlmcore.errors._music import (
    MusicBalanceError,
    MusicBlockedError,
    MusicBusyError,
    MusicCancelledError,
    MusicDownloadError,
    MusicError,
    MusicIncompleteError,
    MusicKeyError,
    MusicParametersError,
    MusicProtocolError,
    MusicRateLimitError,
    MusicRefusedError,
    MusicTimeoutError,
    MusicUnavailableError,
)
from vlmcore.errors._robots import (
    PolicyError,
    PolicyProtocolError,
    PolicyRefusedError,
    PolicyStatusError,
    PolicyTimeoutError,
    PolicyUnavailableError,
    UnsafeActionError,
)
from vlmcore.errors._values import (
    AmbiguousResponseError,
    ContractError,
    DocumentError,
    EndpointError,
    EpisodeError,
    LimitExceededError,
    MediaError,
    MediaLimitError,
    MissingDependencyError,
)
from vlmcore.errors._weights import (
    CorruptWeightsError,
    WeightChecksumError,
    WeightMismatchError,
    WeightsBudgetError,
    WeightsCancelledError,
    WeightsChangedError,
    WeightsError,
    WeightsLimitError,
)

__all__ = [
    "AmbiguousResponseError",
    "ArtifactError",
    "ArtifactTamperedError",
    "ContractError",
    "CorruptWeightsError",
    "DetectionCancelledError",
    "DetectionError",
    "DocumentError",
    "EndpointError",
    "EpisodeError",
    "GenerationError",
    "GraphError",
    "GraphFailedError",
    "GraphRefusedError",
    "GraphServerError",
    "GraphStoppedError",
    "IncompleteAnswersError",
    "InputMismatchError",
    "JobError",
    "JobJournalError",
    "JobRunningError",
    "JobSinkError",
    "JobSourceError",
    "LabError",
    "LimitExceededError",
    "MediaError",
    "MediaLimitError",
    "MissingDependencyError",
    "ModelAccessError",
    "ModelError",
    "ModelMemoryError",
    "ModelNotServedError",
    "ModelServerBusyError",
    "ModelServerError",
    "ModelServerKeyError",
    "ModelServerProtocolError",
    "ModelServerRateLimitError",
    "ModelServerRefusedError",
    "ModelServerTimeoutError",
    "ModelServerUnavailableError",
    "MusicBalanceError",
    "MusicBlockedError",
    "MusicBusyError",
    "MusicCancelledError",
    "MusicDownloadError",
    "MusicError",
    "MusicIncompleteError",
    "MusicKeyError",
    "MusicParametersError",
    "MusicProtocolError",
    "MusicRateLimitError",
    "MusicRefusedError",
    "MusicTimeoutError",
    "MusicUnavailableError",
    "PolicyError",
    "PolicyProtocolError",
    "PolicyRefusedError",
    "PolicyStatusError",
    "PolicyTimeoutError",
    "PolicyUnavailableError",
    "StructureError",
    "SuiteError",
    "UnsafeActionError",
    "UnsupportedModelError",
    "VlmcoreError",
    "WeightChecksumError",
    "WeightMismatchError",
    "WeightsBudgetError",
    "WeightsCancelledError",
    "WeightsChangedError",
    "WeightsError",
    "WeightsLimitError",
]

for _name in __all__:  # where users import them from, in tracebacks and pickles too
    globals()[_name].__module__ = __name__
