"""Content-addressed attachments: what a log refers to by digest and what a home holds of it.

media: image headers; references: image blocks of messages; versions: sizes and recipe ids of what is sent; file_index:
ids of uploaded files; store: the disk edge. Source: spec images.
"""
