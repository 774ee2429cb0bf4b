/** The `data` of the frames of server-sent events, parsed. Source: WHATWG HTML, section 9.2.6. */
export async function* framesOf<Frame>(response: Response): AsyncGenerator<Frame, void, void> {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  let rest = ''
  let data: string[] = []
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      rest += decoder.decode(value, { stream: true })
      // A carriage return at the end may be the first half of a line's end.
      const lines = rest.split(/\r\n|\n|\r(?!$)/)
      rest = lines.pop() ?? ''
      for (const line of lines) {
        if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5))
        else if (line === '' && data.length > 0) {
          yield JSON.parse(data.join('\n')) as Frame
          data = []
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => {
      // It has broken: there is nothing left to cancel.
    })
  }
}
