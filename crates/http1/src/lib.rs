//! HTTP/1.1 heads, framing and bodies: bytes in, bytes and facts out (RFC 9112).
