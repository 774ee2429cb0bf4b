import { load } from 'cheerio'

export default () => () => load('<ul><li>warp<li>weft</ul>')('li').length
