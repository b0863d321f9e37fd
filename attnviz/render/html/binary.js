/**
 * The bytes that a block of the page holds: packed by deflate, written in base64.
 * @param {string} text
 * @returns {Promise<Uint8Array>}
 */
async function inflate(text) {
  const letters = atob(text);
  const packed = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) packed[i] = letters.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * Numbers whose first bytes stand first, then all their second ones, put together again.
 * @param {Uint8Array} bytes
 * @param {number} width bytes of a number
 * @returns {ArrayBuffer}
 */
function joined(bytes, width) {
  const n = bytes.length / width;
  const whole = new Uint8Array(bytes.length);
  for (let plane = 0; plane < width; plane++) {
    for (let i = 0, at = plane * n; i < n; i++, at++) whole[i * width + plane] = bytes[at];
  }
  return whole.buffer;
}
