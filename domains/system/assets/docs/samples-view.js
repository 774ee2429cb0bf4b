import { codeBlock } from './code-view.js'
import { copyButton, el } from './dom.js'
import { samplesOf } from './samples.js'

/** Stands for a token that was entered: it is copied, and not shown. */
const HIDDEN_TOKEN = '••••••••'
/** The kind of sample that was looked at last, for all operations. */
let wanted = 'curl'

/** Samples of a request as it is filled in. `update` is called when that changes. */
export function samplesView(operation, inputs, page) {
  const buttons = el('div.sample-names', { role: 'group', 'aria-label': 'Samples' })
  const code = el('div.sample-code')
  const note = el('p.meta', { hidden: true }, ...clientNote(operation))
  const copy = copyButton(() => chosen(made(page.token() || 'TOKEN')).text)
  const element = el('div.samples', {}, el('div.sample-line', {}, buttons, copy), code, note)
  const made = (token) => {
    const context = { schemas: page.schemas, origin: location.origin, token }
    return samplesOf(operation, inputs.read(), context)
  }
  const update = () => {
    const samples = made(page.token() === '' ? 'TOKEN' : HIDDEN_TOKEN)
    const { name, language, text } = chosen(samples)
    buttons.replaceChildren(...samples.map((sample) => button(sample.name, sample.name === name)))
    code.replaceChildren(codeBlock(text.trimEnd(), language))
    note.hidden = name !== 'client'
  }
  const button = (name, isChosen) =>
    el(
      'button.quiet',
      {
        type: 'button',
        'aria-pressed': String(isChosen),
        click: () => {
          wanted = name
          update()
          buttons.querySelector('[aria-pressed="true"]').focus()
        },
      },
      name,
    )
  update()
  return { element, update }
}

function chosen(samples) {
  return samples.find(({ name }) => name === wanted) ?? samples[0]
}

function clientNote({ path }) {
  const address = path.startsWith('/system/') ? '/system/client.ts?system=true' : '/system/client.ts'
  return [el('code', {}, 'client.ts'), ' is ', el('a', { href: address }, address)]
}
