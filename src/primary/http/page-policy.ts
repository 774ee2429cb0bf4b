/** A page may load what its own service has. */
const PAGE_POLICY = "content-security-policy: default-src 'self'; frame-ancestors 'none'; base-uri 'none'\r\n"
/** A picture or a document of data that is opened as a page must not run scripts in it. */
const DATA_POLICY = "content-security-policy: default-src 'none'; style-src 'unsafe-inline'; sandbox\r\n"
/**
 * Types in which browsers run scripts: HTML, whatever is XML (SVG, XHTML, MathML, RDF, feeds, stylesheets), and web archives.
 * Source: the Mime Sniffing standard, section 4.6 ("scriptable MIME type").
 */
const SCRIPTABLE = /(?:^|\n)content-type: ?(?:(text\/html)|text\/xsl|multipart\/|message\/rfc822|[^\r;, ]*[/+]xml)/i
const OWN_POLICY = /(?:^|\n)content-security-policy: /

/** The header line that an answer of this type needs; empty when it needs none, or has one. @param head `name: value` lines */
export function policyFor(head: string): string {
  const found = SCRIPTABLE.exec(head)
  if (found === null || OWN_POLICY.test(head)) return ''
  return found[1] === undefined ? DATA_POLICY : PAGE_POLICY
}
