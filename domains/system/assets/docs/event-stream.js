/**
 * The events of a stream, as they come: name, data and id. Comments, which keep the connection open, are left out.
 * Source: WHATWG HTML, section 9.2.6.
 */
export async function* streamedEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  let id = ''
  let name = ''
  let data = []
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    // A carriage return at the end may be the first half of a line's end.
    const lines = (rest + value).split(/\r\n|\n|\r(?!$)/)
    rest = lines.pop()
    for (const line of lines) {
      const [, field, text = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line)
      if (field === 'data') data.push(text)
      else if (field === 'event') name = text
      else if (field === 'id') id = text
      if (line !== '') continue
      if (data.length > 0) yield { name, id, data: data.join('\n') }
      name = ''
      data = []
    }
  }
}
