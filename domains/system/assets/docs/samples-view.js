import { applicationOrigin } from '/system/docs/application.js'
import { copyButton, el } from '/system/docs/dom.js'
import { codeBlock } from './code-view.js'
import { samplesOf } from './samples.js'

/** Stands for a token that was entered: it is copied, and not shown. */
const HIDDEN_TOKEN = '••••••••'
/** The kind of sample that was looked at last, for all operations. */
let wanted = 'curl'

/** Samples of a request as it is filled in. `update` is called when that changes. */
export function samplesView(operation, inputs, page) {
  const made = (token) => {
    const origin = operation.servers === undefined ? applicationOrigin() : location.origin
    const context = { schemas: page.schemas, origin, token }
    return samplesOf(operation, inputs.read(), context)
  }
  // They stay the same: a button that is made anew while it is pressed is not clicked.
  const buttons = made('').map(({ name }) => el('button.quiet', { type: 'button', click: () => choose(name) }, name))
  const code = el('div.sample-code')
  const note = el('p.meta', { hidden: true }, ...clientNote(operation))
  const copy = copyButton(() => chosen(made(page.token() || 'TOKEN')).text, 'the sample')
  const update = () => {
    const { name, language, text } = chosen(made(page.token() === '' ? 'TOKEN' : HIDDEN_TOKEN))
    for (const button of buttons) button.setAttribute('aria-pressed', String(button.textContent === name))
    code.replaceChildren(codeBlock(text.trimEnd(), language))
    note.hidden = name !== 'client'
  }
  const choose = (name) => {
    wanted = name
    update()
  }
  update()
  const names = el('div.sample-names', { role: 'group', 'aria-label': 'Samples' }, ...buttons)
  return { element: el('div.samples', {}, el('div.sample-line', {}, names, copy), code, note), update }
}

function chosen(samples) {
  return samples.find(({ name }) => name === wanted) ?? samples[0]
}

function clientNote({ path }) {
  const address = path.startsWith('/system/') ? '/system/client.ts?system=true' : '/system/client.ts'
  return [el('code', {}, 'client.ts'), ' is ', el('a', { href: address }, address)]
}
