import { el } from '/system/dashboard/dom.js'

/**
 * A form for another payload of a dead letter. The old values are not shown anywhere, so it begins with the keys alone.
 * @param save gets the button and the payload; answers whether it was taken
 */
export function letterForm({ event, payload_keys }, save) {
  const text = el('textarea', { rows: '6', spellcheck: 'false', 'aria-label': `New payload of ${event}, as JSON` })
  text.value = JSON.stringify(Object.fromEntries(payload_keys.map((key) => [key, null])), null, 2)
  const fault = el('p.note', { role: 'alert' })
  const button = el('button.primary', { type: 'submit' }, 'Save payload')
  const form = el('form.letter-form', {}, text, fault, el('div.actions', {}, button))
  form.hidden = true
  form.addEventListener('submit', async (submitted) => {
    submitted.preventDefault()
    let payload
    try {
      payload = JSON.parse(text.value)
    } catch (error) {
      fault.textContent = `That is no JSON: ${error.message}`
      return
    }
    fault.textContent = ''
    if (await save(button, payload)) form.hidden = true
  })
  return form
}
