/** Makes elements. Texts are set as text: nothing that comes from the process, a document or a response is parsed as markup. */

const SVG = 'http://www.w3.org/2000/svg'

/**
 * @param {string} tag name, and classes behind dots: `p.note`
 * @param {Record<string, unknown>} [attributes] functions become listeners; null, undefined and false are left out
 * @param {...(Node | string | null | undefined | false)} children
 */
export const el = (tag, attributes, ...children) =>
  filled((name) => document.createElement(name), tag, attributes, children)
export const svg = (tag, attributes, ...children) =>
  filled((name) => document.createElementNS(SVG, name), tag, attributes, children)

const isGiven = (value) => value !== null && value !== undefined && value !== false

function filled(create, tag, attributes = {}, children) {
  const [name, ...classes] = tag.split('.')
  const element = create(name)
  element.classList.add(...classes)
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(key, value)
    else if (isGiven(value)) element.setAttribute(key, value === true ? '' : value)
  }
  element.append(...children.filter(isGiven))
  return element
}

/** Sets a text only when it differs: setting the same text again would still cost layout. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text
}

export function setAttribute(element, name, value) {
  if (value === null) {
    if (element.hasAttribute(name)) element.removeAttribute(name)
  } else if (element.getAttribute(name) !== value) element.setAttribute(name, value)
}

/** A button that copies what `readText` returns, and then shows whether it did. */
export function copyButton(readText, what = 'it') {
  const button = el('button.quiet.small', { type: 'button', 'aria-label': `Copy ${what}` }, 'Copy')
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(readText())
      button.textContent = 'Copied'
    } catch {
      // Browsers forbid it on plain HTTP, except on localhost. The text can be selected by hand.
      button.textContent = 'Select it by hand'
    }
    setTimeout(() => {
      button.textContent = 'Copy'
    }, 1500)
  })
  return button
}

export function empty(title, ...hints) {
  return el('div.empty', {}, el('p.empty-title', {}, title), ...hints)
}

/** A list of terms with their values, which are nodes or texts. A row without a value is left out. */
export function facts(rows) {
  const list = el('dl.facts')
  for (const [term, ...values] of rows) {
    const shown = values.filter((value) => value !== null && value !== undefined)
    if (shown.length > 0) list.append(el('dt', {}, term), el('dd', {}, ...shown))
  }
  return list
}

/** Renders a text in which backticks mark code. */
export function prose(text) {
  return text.split('`').map((part, index) => (index % 2 === 1 ? el('code', {}, part) : part))
}
