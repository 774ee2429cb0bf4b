/** Opens places of the source in the reader's editor. Which one it is, is kept by the browser: `heddle-editor` in its local storage. */

const KEY = 'heddle-editor'
export const EDITORS = [
  { name: 'VS Code', address: 'vscode://file/{path}:{line}:{column}' },
  { name: 'VS Codium', address: 'vscodium://file/{path}:{line}:{column}' },
  { name: 'Cursor', address: 'cursor://file/{path}:{line}:{column}' },
  { name: 'Zed', address: 'zed://file/{path}:{line}:{column}' },
  { name: 'Sublime Text', address: 'subl://open?url=file:///{path}&line={line}&column={column}' },
  { name: 'WebStorm', address: 'webstorm://open?file=/{path}&line={line}&column={column}' },
]
/** `at name (file:line:column)`, `at file:line:column` or the place alone. */
const FRAME = /(?<=\(|\bat (?:async )?|^\s*)(?!at )([^\s()][^()]*?\.[cm]?[jt]sx?):(\d+)(?::(\d+))?/

export function editorAddress() {
  try {
    return localStorage.getItem(KEY) ?? EDITORS[0].address
  } catch {
    return EDITORS[0].address
  }
}

/** @param address with `{path}`, `{line}` and `{column}` */
export function chooseEditor(address) {
  try {
    localStorage.setItem(KEY, address)
  } catch {
    // A forbidden storage: it stays as it was.
  }
}

/** @param {{ path: string, line: number, column?: number }} place with an absolute path */
export function editorUrl({ path, line, column = 1 }, address = editorAddress()) {
  // Each editor wants the path after one slash. A path of Windows has none.
  const plain = encodeURI(path.replaceAll('\\', '/').replace(/^\/+/, '')).replaceAll('#', '%23').replaceAll('?', '%3F')
  return address.replaceAll('{path}', plain).replaceAll('{line}', String(line)).replaceAll('{column}', String(column))
}

/**
 * The place that a line of a stack names, if its file is one of the project.
 * @param {string} root folder of the project
 * @returns {{ path: string, line: number, column: number, text: string } | null}
 */
export function placeIn(frame, root) {
  const [text, file, line, column = '1'] = FRAME.exec(frame) ?? []
  if (file === undefined || file.startsWith('node:')) return null
  const path = file.startsWith('file://') ? decodeURIComponent(file.slice('file://'.length)) : file
  const isAbsolute = /^(?:\/|[A-Za-z]:[\\/])/.test(path)
  return { path: isAbsolute ? path : `${root}/${path}`, line: Number(line), column: Number(column), text }
}

export const isOwnEditor = (address) => !EDITORS.some((each) => each.address === address)
