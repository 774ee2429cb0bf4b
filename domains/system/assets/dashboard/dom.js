/** Makes elements. Texts are set as text: nothing that comes from the process is parsed as markup. */

const SVG = 'http://www.w3.org/2000/svg'

/**
 * @param {string} tag
 * @param {Record<string, unknown>} [props] `class`, `text`, `on: { click }`, or attributes; null, undefined and false are left out
 * @param {...(Node | string | null | undefined)} children
 */
export function el(tag, props = {}, ...children) {
  return filled(document.createElement(tag), props, children)
}

export function svg(tag, props = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), props, children)
}

function filled(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue
    if (name === 'text') element.textContent = value
    else if (name === 'on') for (const [type, run] of Object.entries(value)) element.addEventListener(type, run)
    else element.setAttribute(name, value === true ? '' : value)
  }
  for (const child of children) if (child !== null && child !== undefined) element.append(child)
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

/** A button that copies a text, and then shows whether it did. */
export function copyButton(text, what) {
  const button = el('button', { class: 'quiet small', type: 'button', 'aria-label': `Copy ${what}`, text: 'Copy' })
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(text)
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
  return el('div', { class: 'empty' }, el('p', { class: 'empty-title', text: title }), ...hints)
}

/** A list of terms with their values, which are nodes or texts. A row without a value is left out. */
export function facts(rows) {
  const list = el('dl', { class: 'facts' })
  for (const [term, ...values] of rows) {
    const shown = values.filter((value) => value !== null && value !== undefined)
    if (shown.length > 0) list.append(el('dt', { text: term }), el('dd', {}, ...shown))
  }
  return list
}
