export interface Ambiguous {
  name: string
  /** Everything between the request line and the blank line, then the body. */
  head: string
  body?: string
  startLine?: string
  /** What our answer names. The others the library refuses itself, with a page of its own or none. */
  fault?: string
  /** The library closes these itself, and calls all that it cannot read a wrong version. */
  says505?: boolean
}

export const AMBIGUOUS: Ambiguous[] = [
  {
    name: 'content-length with transfer-encoding',
    head: 'content-length: 5\r\ntransfer-encoding: chunked\r\n',
    body: '0\r\n\r\n',
  },
  {
    name: 'transfer-encoding with content-length',
    head: 'transfer-encoding: chunked\r\ncontent-length: 5\r\n',
    body: '0\r\n\r\n',
  },
  {
    name: 'two different content-lengths',
    fault: 'more than one content-length',
    head: 'content-length: 2\r\ncontent-length: 3\r\n',
    body: 'ab',
  },
  {
    name: 'two equal content-lengths',
    fault: 'more than one content-length',
    head: 'content-length: 2\r\ncontent-length: 2\r\n',
    body: 'ab',
  },
  {
    name: 'a list of content-lengths',
    fault: 'content-length is no number',
    head: 'content-length: 2, 2\r\n',
    body: 'ab',
  },
  {
    name: 'a content-length with a plus',
    fault: 'content-length is no number',
    head: 'content-length: +2\r\n',
    body: 'ab',
  },
  {
    name: 'a negative content-length',
    fault: 'content-length is no number',
    head: 'content-length: -2\r\n',
    body: 'ab',
  },
  { name: 'an empty content-length', fault: 'content-length is no number', head: 'content-length:\r\n', body: 'ab' },
  { name: 'a blank content-length', fault: 'content-length is no number', head: 'content-length:   \r\n', body: 'ab' },
  {
    name: 'a hexadecimal content-length',
    fault: 'content-length is no number',
    head: 'content-length: 0x2\r\n',
    body: 'ab',
  },
  {
    name: 'a content-length with a blank inside',
    fault: 'content-length is no number',
    head: 'content-length: 1 2\r\n',
    body: 'ab',
  },
  {
    name: 'a content-length with a fraction',
    fault: 'content-length is no number',
    head: 'content-length: 2.0\r\n',
    body: 'ab',
  },
  {
    name: 'a content-length beyond 64 bits',
    fault: 'content-length is no number',
    head: 'content-length: 18446744073709551618\r\n',
    body: 'ab',
  },
  { name: 'a blank before the colon of content-length', head: 'content-length : 2\r\n', body: 'ab' },
  {
    name: 'transfer-encoding: gzip, chunked',
    fault: 'unknown transfer-encoding',
    head: 'transfer-encoding: gzip, chunked\r\n',
    body: '0\r\n\r\n',
  },
  {
    name: 'transfer-encoding: chunked, chunked',
    fault: 'unknown transfer-encoding',
    head: 'transfer-encoding: chunked, chunked\r\n',
    body: '0\r\n\r\n',
  },
  {
    name: 'transfer-encoding: identity',
    fault: 'unknown transfer-encoding',
    head: 'transfer-encoding: identity\r\n',
    body: '',
  },
  {
    name: 'an unknown transfer-encoding',
    fault: 'unknown transfer-encoding',
    head: 'transfer-encoding: xchunked\r\n',
    body: '0\r\n\r\n',
  },
  {
    name: 'an empty transfer-encoding',
    fault: 'unknown transfer-encoding',
    head: 'transfer-encoding:\r\n',
    body: '0\r\n\r\n',
  },
  {
    name: 'two transfer-encodings',
    fault: 'more than one transfer-encoding',
    head: 'transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n',
    body: '0\r\n\r\n',
  },
  { name: 'a vertical tab in transfer-encoding', head: 'transfer-encoding: \x0bchunked\r\n', body: '0\r\n\r\n' },
  { name: 'a blank before the colon of transfer-encoding', head: 'transfer-encoding : chunked\r\n', body: '0\r\n\r\n' },
  { name: 'two hosts', head: 'host: other\r\n' },
  { name: 'a folded header line', head: 'x-a: b\r\n c\r\n' },
  { name: 'a line folded into a content-length', head: 'content-length:\r\n 2\r\n', body: 'ab' },
  { name: 'a bare line feed after a header', head: 'x-a: b\nx-c: d\r\n' },
  { name: 'a bare line feed at the end of the head', head: 'x-a: b\r\n\n' },
  { name: 'a bare line feed in the request line', startLine: 'POST /p/echo HTTP/1.1\n', head: '', says505: true },
  { name: 'a NUL in a header', head: 'x-a: b\0c\r\n' },
  { name: 'a control character in a header', head: 'x-a: b\x01c\r\n' },
  { name: 'a blank in a header name', head: 'x a: b\r\n' },
  { name: 'a header line without a colon', head: 'xab\r\n' },
]
