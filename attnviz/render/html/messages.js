// Stands for the messages where scripts are read as they are: `build` puts English and Korean in their places.

/** A message in English and in Korean. @param {string} english @returns {[string, string]} */
function gettext(english) {
  return [english, english];
}

/** A message that has another translation elsewhere. @param {string} _context @param {string} english @returns {[string, string]} */
function pgettext(_context, english) {
  return [english, english];
}
