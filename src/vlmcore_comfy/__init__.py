"""vlmcore as ComfyUI nodes; see the changelog for what is here yet."""
