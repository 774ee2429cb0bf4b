/** Content types by the end of a name. Source: the IANA registry of media types, and RFC 9239 for JavaScript. */
const TYPES: Readonly<Record<string, string>> = {
  '.avif': 'image/avif',
  '.bmp': 'image/bmp',
  '.css': 'text/css',
  '.csv': 'text/csv',
  '.gif': 'image/gif',
  '.gz': 'application/gzip',
  '.htm': 'text/html',
  '.html': 'text/html',
  '.ico': 'image/x-icon',
  '.ics': 'text/calendar',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.jsonld': 'application/ld+json',
  '.map': 'application/json',
  '.md': 'text/markdown',
  '.mjs': 'text/javascript',
  '.mp3': 'audio/mpeg',
  '.mp4': 'video/mp4',
  '.oga': 'audio/ogg',
  '.ogv': 'video/ogg',
  '.otf': 'font/otf',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.rss': 'application/rss+xml',
  '.svg': 'image/svg+xml',
  '.ttf': 'font/ttf',
  '.txt': 'text/plain',
  '.wasm': 'application/wasm',
  '.wav': 'audio/wav',
  '.webm': 'video/webm',
  '.webmanifest': 'application/manifest+json',
  '.webp': 'image/webp',
  '.woff': 'font/woff',
  '.woff2': 'font/woff2',
  '.xml': 'application/xml',
  '.zip': 'application/zip',
}

const IS_TEXT = /^text\/|\/(?:json|xml|wasm)$|\+(?:json|xml)$/

/** The type of a file, by the end of its name alone. */
export interface FileType {
  /** With its charset: text is UTF-8. */
  readonly contentType: string
  /** There may be a compressed file beside it. */
  readonly isText: boolean
}

/** @param extension in lower case, with its dot */
export function fileType(extension: string): FileType {
  const type = TYPES[extension] ?? 'application/octet-stream'
  const isText = IS_TEXT.test(type)
  const hasCharset = isText && (type.startsWith('text/') || type.endsWith('json'))
  return { contentType: hasCharset ? `${type}; charset=utf-8` : type, isText }
}
