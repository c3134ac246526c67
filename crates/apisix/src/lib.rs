//! Shapes that cross processes: APISIX's control API, our health document, the status document of `lazaret-rhi`.
